#include <cermet/cermet.h>
#include <cermet/graph.h>
#include <stdio.h>

/* The same as a graph: 0, or 1 after a message. */
static int run_graph(cermet_handle* handle, const DLTensor* in, const DLTensor* scale, DLTensor* out) {
  cermet_graph* graph = NULL;
  cermet_session* session = NULL;
  cermet_value operands[2], y;
  cermet_maximum rows = {"M", 16};
  cermet_compile_options options = cermet_compile_defaults();
  const DLTensor* inputs[1];
  DLTensor* outputs[1];
  int failed;
  inputs[0] = in;
  outputs[0] = out;
  options.maxima = &rows;
  options.maximum_count = 1;
  failed = cermet_graph_create(handle, "norm", &graph) != CERMET_OK ||
           cermet_graph_input(graph, "x", "f32[M, 4]", &operands[0]) != CERMET_OK ||
           cermet_graph_constant(graph, "w", NULL, scale, &operands[1]) != CERMET_OK ||
           cermet_graph_apply(graph, "rms_norm", operands, 2, NULL, 0, NULL, &y, 1, NULL) != CERMET_OK ||
           cermet_graph_output(graph, "y", y) != CERMET_OK ||
           cermet_graph_compile(graph, &options, &session) != CERMET_OK ||
           cermet_session_run(session, inputs, 1, outputs, 1, NULL) != CERMET_OK;
  if (failed) fprintf(stderr, "%s\n", cermet_last_error_message());
  cermet_graph_destroy(graph);
  cermet_session_destroy(session);
  return failed;
}

/* rms_norm of one row and then of two by one operator, with a weight that operators could share; then by name. */
int main(void) {
  cermet_handle* handle = NULL;
  cermet_weight* weight = NULL;
  cermet_op* op = NULL;
  cermet_callable* callable = NULL;
  int64_t shape[2] = {1, 4}, open_shape[2] = {CERMET_DIM('M'), 4};
  float x[8] = {2, 2, 2, 2, 4, 4, 4, 4}, w[4] = {1, 1, 1, 1}, y[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  cermet_descriptor operands[2] = {{"f32", 2, NULL, NULL, 0}, {"f32", 1, NULL, NULL, 1}};
  cermet_range rows = {'M', 16};
  DLTensor in = {x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, NULL, NULL, 0},
           out = {y, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, NULL, NULL, 0};
  DLTensor scale = {w, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, NULL, NULL, 0};
  const DLTensor* inputs[2] = {NULL, NULL};
  DLTensor* outputs[1] = {NULL};
  int64_t m;
  inputs[0] = &in;
  outputs[0] = &out;
  operands[0].shape = open_shape;
  operands[1].shape = scale.shape = shape + 1;
  in.shape = out.shape = shape;
  if (cermet_create("cpu", 1, &handle) != CERMET_OK ||
      cermet_weight_create(handle, &scale, NULL, &weight) != CERMET_OK ||
      cermet_op_create_ranged(handle, "rms_norm", operands, 2, NULL, 0, &rows, 1, &op) != CERMET_OK ||
      cermet_op_set_weight(op, 1, weight) != CERMET_OK) {
    fprintf(stderr, "%s\n", cermet_last_error_message());
    return 1;
  }
  for (m = 1; m <= 2; ++m) {
    shape[0] = m;
    if (cermet_op_run(op, inputs, 2, outputs, 1, NULL, 0, NULL) != CERMET_OK) {
      fprintf(stderr, "%s\n", cermet_last_error_message());
      return 1;
    }
  }
  inputs[1] = &scale;
  if (cermet_get_op(handle, "rms_norm", inputs, 2, NULL, 0, NULL, &callable) != CERMET_OK ||
      cermet_call(callable, inputs, 2, outputs, 1, NULL) != CERMET_OK) {
    fprintf(stderr, "%s\n", cermet_last_error_message());
    return 1;
  }
  inputs[1] = NULL;
  y[7] = 0;
  if (run_graph(handle, &in, &scale, &out)) return 1;
  cermet_callable_destroy(callable);
  cermet_op_destroy(op);
  cermet_weight_destroy(weight);
  cermet_destroy(handle);
  printf("%.3f\n", (double)y[7]);
  return cermet_model_defaults().struct_size == sizeof(cermet_model_options) ? 0 : 1;
}
