/* rms_norm by its typed function, on addresses alone, with a log of its own. */
#include <cermet/ops.h>
#include <stdio.h>

static void count_messages(void* user, cermet_log_level level, const char* message) {
  (void)level;
  (void)message;
  ++*(int*)user;
}

int main(void) {
  cermet_handle* handle = NULL;
  cermet_op* op = NULL;
  int64_t shape[2] = {2, 4};
  float x[8] = {2, 2, 2, 2, 4, 4, 4, 4}, w[4] = {1, 1, 1, 1}, y[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  const void* inputs[2] = {NULL, NULL};
  void* outputs[1] = {NULL};
  int messages = 0;
  cermet_rms_norm_args args = cermet_rms_norm_defaults();
  inputs[CERMET_RMS_NORM_X] = x;
  inputs[CERMET_RMS_NORM_WEIGHT] = w;
  outputs[0] = y;
  args.x = cermet_tensor("f32", 2, shape);
  args.weight = cermet_tensor("f32", 1, shape + 1);
  cermet_set_log(count_messages, &messages, CERMET_LOG_DEBUG);
  if (cermet_device_count() < 1 || !cermet_device_name(0) ||
      cermet_create(cermet_device_name(0), 1, &handle) != CERMET_OK ||
      cermet_rms_norm_create(handle, &args, &op) != CERMET_OK ||
      cermet_op_run_pointers(op, inputs, 2, outputs, 1, NULL, 0, NULL) != CERMET_OK) {
    fprintf(stderr, "%s\n", cermet_last_error_message());
    return 1;
  }
  cermet_set_log(NULL, NULL, CERMET_LOG_WARNING);
  cermet_op_destroy(op);
  cermet_destroy(handle);
  printf("%.3f\n", (double)y[7]);
  return cermet_device_name(cermet_device_count()) == NULL ? 0 : 1;
}
