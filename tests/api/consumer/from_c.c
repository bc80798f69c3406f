#include <cermet/cermet.h>
#include <stdio.h>

int main(void) {
  cermet_handle* handle = NULL;
  cermet_op* op = NULL;
  int64_t shape[2] = {1, 4};
  float x[4] = {2, 2, 2, 2}, y[4] = {0, 0, 0, 0};
  cermet_descriptor input = {"f32", 2, shape, NULL, 0};
  DLTensor in = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0}, out = {y, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, NULL, 0};
  const DLTensor* inputs[1] = {&in};
  DLTensor* outputs[1] = {&out};
  if (cermet_create("cpu", 1, &handle) != CERMET_OK || cermet_op_create(handle, "rms_norm", &input, 1, NULL, 0, &op) != CERMET_OK ||
      cermet_op_run(op, inputs, 1, outputs, 1, NULL, 0, NULL) != CERMET_OK) {
    fprintf(stderr, "%s\n", cermet_last_error_message());
    return 1;
  }
  cermet_op_destroy(op);
  cermet_destroy(handle);
  printf("%.3f\n", (double)y[3]);
  return 0;
}
