/* Graphs of operators, from C: built node by node or read from text, compiled for a handle's device, and run on the
 * caller's tensors. Errors, threads and tensors are as cermet.h describes them; a graph and a session are used by one
 * thread at a time.
 *
 *   cermet_graph_create(handle, "block", &graph);
 *   cermet_graph_input(graph, "x", "bf16[T, 64]", &x);                   T is a size that runs give
 *   cermet_graph_constant(graph, "w", NULL, &w_tensor, &w);
 *   cermet_graph_apply(graph, "rms_norm", (cermet_value[]){x, w}, 2, NULL, 0, NULL, &y, 1, NULL);
 *   cermet_graph_output(graph, "y", y);
 *   cermet_graph_compile(graph, &options, &session);                      with the largest T
 *   cermet_session_run(session, inputs, 1, outputs, 1, stream); */
#ifndef CERMET_GRAPH_H_
#define CERMET_GRAPH_H_

#include <cermet/cermet.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Building
 * ------------------------------------------------------------------------------------------------------------------------------
 */

typedef struct cermet_graph cermet_graph;

/* A value of a graph: an input, a constant or a node's result. */
typedef int32_t cermet_value;
#define CERMET_NO_VALUE ((cermet_value)(-1)) /* an optional operand that is not given */

/* An empty graph. `name` is for messages, reports and profilers. The handle may be destroyed before the graph. */
CERMET_API cermet_status cermet_graph_create(cermet_handle* handle, const char* name, cermet_graph** graph);
/* A graph from its text, as cermet_graph_text() writes it (docs/guide/graphs.md has the grammar). Constants that the
 * text only declares get their values from cermet_graph_set_constant(). */
CERMET_API cermet_status cermet_graph_parse(cermet_handle* handle, const char* text, cermet_graph** graph);
/* Sessions compiled from it stay valid. NULL is allowed. */
CERMET_API void cermet_graph_destroy(cermet_graph* graph);

/* The range of a size that runs give, from 0 on, both ends included: what compilation may count on. A size without one
 * may be anything. */
CERMET_API cermet_status cermet_graph_symbol(cermet_graph* graph, const char* name, int64_t least, int64_t greatest);
/* Declares an input of a run. `type` is an element type and dimensions, "bf16[T, 64]", "i32[]"; a dimension is a
 * number, the name of a size that runs give, or an expression of both: "2*T+1". */
CERMET_API cermet_status cermet_graph_input(cermet_graph* graph, const char* name, const char* type,
                                            cermet_value* value);
/* The same of tensors whose dimensions are in another order in memory, outermost first: {0, 2, 3, 1} for images
 * [N, C, H, W] with their channels last, {1, 0} for transposed matrices. `type` and the value are the tensor's; `order`
 * has an entry for each dimension, and the tensors of a run are dense in that order. Where kernels take it, nothing is
 * copied. An update's input has no order. */
CERMET_API cermet_status cermet_graph_input_in_order(cermet_graph* graph, const char* name, const char* type,
                                                     const int64_t* order, cermet_value* value);
/* A constant with the values of a tensor, in memory of the host or of the handle's device, complete. It is read by
 * every cermet_graph_compile() and must stay until the last of them returns. `dtype` names the element type; NULL: that
 * of the tensor, which for bytes is "u8". */
CERMET_API cermet_status cermet_graph_constant(cermet_graph* graph, const char* name, const char* dtype,
                                               const DLTensor* tensor, cermet_value* value);
/* A constant whose values are copied into the graph, are part of its text and are known to rewrite rules: for small
 * tensors in memory of the host. */
CERMET_API cermet_status cermet_graph_literal(cermet_graph* graph, const char* name, const char* dtype,
                                              const DLTensor* tensor, cermet_value* value);
/* The values, as of cermet_graph_constant(), of a constant that a graph's text only declares; also replaces those of
 * another. */
CERMET_API cermet_status cermet_graph_set_constant(cermet_graph* graph, const char* name, const DLTensor* tensor);

/* Applies an operator: validates operands and attributes against its schema, infers the results and appends a node.
 * `inputs` are in the schema's order, CERMET_NO_VALUE for an optional operand that is not given. `names` are those of
 * the results; NULL: made of scope and operator ("layers.0.rms_norm"). Writes the first `capacity` results, and their
 * number to `count`, which may be NULL. */
CERMET_API cermet_status cermet_graph_apply(cermet_graph* graph, const char* op, const cermet_value* inputs,
                                            size_t input_count, const cermet_attribute* attributes,
                                            size_t attribute_count, const char* const* names, cermet_value* outputs,
                                            size_t capacity, size_t* count);
/* Makes a value a result of the graph, under a name of its own. A result that shares an input's memory (state that a
 * node updates in place) is that memory. */
CERMET_API cermet_status cermet_graph_output(cermet_graph* graph, const char* name, cermet_value value);
/* A result that is written with its dimensions in another order in memory, as
 * cermet_graph_input_in_order() has it. */
CERMET_API cermet_status cermet_graph_output_in_order(cermet_graph* graph, const char* name, cermet_value value,
                                                      const int64_t* order);
/* Updates state: once a run has ended, the memory of an input holds a value of the same type. All nodes that read the
 * input read what it held before, wherever they are added. Where nothing needs the old value any more, the value is
 * written there at once, else copied at the end of the run. An input has at most one update. Its memory is dense, on
 * the handle's device, and no other input's. */
CERMET_API cermet_status cermet_graph_update(cermet_graph* graph, cermet_value input, cermet_value value);

/* Names the part of a model that is being built, for messages, reports and results' names; scopes nest: "layers.0" then
 * "attention". */
CERMET_API cermet_status cermet_graph_scope_begin(cermet_graph* graph, const char* name);
CERMET_API cermet_status cermet_graph_scope_end(cermet_graph* graph);

/* Nodes that are added until the end belong to the super-kernel region `name`, which becomes one launch where the
 * device can. May be entered again by its name; NULL excludes nodes from every region. `options`,
 * "key=value:key=value", are those of docs/guide/super-kernels.md; NULL or "": the defaults, or where the region is
 * entered again those it has, which others may not differ from. An inner one takes the place of an outer one until it
 * ends. */
CERMET_API cermet_status cermet_graph_super_kernel_begin(cermet_graph* graph, const char* name, const char* options);
CERMET_API cermet_status cermet_graph_super_kernel_end(cermet_graph* graph);

/* What a value is. Pointers are valid until the next call for the same graph or session. */
typedef struct cermet_value_info {
  const char* name;
  const char* type;           /* "bf16[T, 64]" */
  const char* dtype;          /* "bf16" */
  int32_t ndim;               /* at most 8 */
  const int64_t* shape;       /* -1 for a size that runs give */
  const char* const* symbols; /* the dimension as text, "T" or "64" */
} cermet_value_info;

CERMET_API cermet_status cermet_graph_value(cermet_graph* graph, cermet_value value, cermet_value_info* info);
/* A value by name; CERMET_NO_VALUE where there is none. */
CERMET_API cermet_value cermet_graph_find(const cermet_graph* graph, const char* name);
/* The graph as text; valid until the next call for the graph. NULL where it fails. */
CERMET_API const char* cermet_graph_text(cermet_graph* graph);

/* ---- Weights
 * -------------------------------------------------------------------------------------------------------------------------------
 */

/* Tensors by name that sessions share: what is packed or computed of them exists once for all of them. Used by one
 * thread at a time, as are all sessions that share it. */
typedef struct cermet_weights cermet_weights;

CERMET_API cermet_status cermet_weights_create(cermet_handle* handle, cermet_weights** weights);
/* Sessions keep what they need. NULL is allowed. */
CERMET_API void cermet_weights_destroy(cermet_weights* weights);
/* Gives a tensor under a name, or replaces the one that was given, which has the same type: what was packed or computed
 * of it is made anew at the next run of each session; no run may be in progress. Memory as of cermet_graph_constant(),
 * which must stay until the tensor is replaced, or the store and all sessions are destroyed: a dense tensor whose
 * kernels take it in row-major order is read where it is, where that is the handle's device and aligned to 64 bytes. */
CERMET_API cermet_status cermet_weights_set(cermet_weights* weights, const char* name, const char* dtype,
                                            const DLTensor* tensor);
/* Memory of what was packed, computed or copied. */
CERMET_API size_t cermet_weights_bytes(const cermet_weights* weights);

/* ---- Compiling
 * -----------------------------------------------------------------------------------------------------------------------------
 */

typedef struct cermet_session cermet_session;

/* The largest value of a size that runs give: it sizes memory and chooses kernels. */
typedef struct cermet_maximum {
  const char* symbol;
  int64_t value;
} cermet_maximum;

/* Start from cermet_compile_defaults(). */
typedef struct cermet_compile_options {
  size_t struct_size;   /* sizeof(cermet_compile_options) where it was compiled */
  const char* fusion;   /* "none", "pattern", "published" or "full"; NULL: "full" */
  const char* rounding; /* "strict": results have the bits of single operators; "fast": float32 between operators of one
                           kernel; NULL: "strict" */
  const cermet_maximum* maxima; /* of every symbol whose range has no end; others may be lowered */
  size_t maximum_count;
  const char* const* skip; /* names of compile steps to leave out: "rewrite"; those of `cermet explain` */
  size_t skip_count;
  int32_t
      capture; /* not 0: on a GPU, runs with the sizes and addresses of an earlier one replay a captured CUDA graph */
  const char* super_kernel; /* regions beside those that the graph marks: "layer", "decode", "NAME:PATTERN"; "none": no
                               region; NULL: as it is marked */
  const char* super_kernel_options; /* of those regions; NULL: the defaults */
  cermet_weights*
      weights; /* where constants without values of their own come from, by name; those that the graph was
                  given values for are added to it where it lacks them; NULL: a store of the session's own */
} cermet_compile_options;

/* Fills in the defaults; struct_size is sizeof(cermet_compile_options). For languages that do not compile this header.
 */
CERMET_API void cermet_compile_options_init(cermet_compile_options* options, size_t struct_size);

static inline cermet_compile_options cermet_compile_defaults(void) {
  cermet_compile_options options;
  cermet_compile_options_init(&options, sizeof options);
  return options;
}

/* Rewrites, fuses, chooses and compiles kernels, reads the constants and plans memory. The graph stays as it is and may
 * be compiled again; handle and graph may be destroyed before the session. `options` may be NULL for the defaults. */
CERMET_API cermet_status cermet_graph_compile(cermet_graph* graph, const cermet_compile_options* options,
                                              cermet_session** session);
/* NULL is allowed. On a GPU no run may still be in progress. */
CERMET_API void cermet_session_destroy(cermet_session* session);

/* ---- Running
 * -------------------------------------------------------------------------------------------------------------------------------
 */

/* Inputs and results, in the order in which the graph declared them. */
CERMET_API size_t cermet_session_input_count(const cermet_session* session);
CERMET_API size_t cermet_session_output_count(const cermet_session* session);
CERMET_API cermet_status cermet_session_input(cermet_session* session, size_t index, cermet_value_info* info);
CERMET_API cermet_status cermet_session_output(cermet_session* session, size_t index, cermet_value_info* info);
/* The shape of a result for these inputs, as ndim numbers. Of the tensors only the shapes are read. */
CERMET_API cermet_status cermet_session_output_shape(cermet_session* session, size_t index,
                                                     const DLTensor* const* inputs, size_t input_count, int64_t* shape);
/* Index of the input whose memory a result is (state that is updated in place), or -1. Whether the value of an update
 * is in its input's memory, or in its own and copied, is decided by cermet_graph_compile(). */
CERMET_API int32_t cermet_session_output_alias(const cermet_session* session, size_t index);

/* Not 0 where runs write the memory of an input: it is updated, or a result is that memory. */
CERMET_API int32_t cermet_session_input_is_written(const cermet_session* session, size_t index);

/* The order of dimensions in memory that an input or a result was declared with: writes it, as ndim numbers, and
 * returns ndim; 0 where there is none. */
CERMET_API int32_t cermet_session_input_order(const cermet_session* session, size_t index, int64_t* order);
CERMET_API int32_t cermet_session_output_order(const cermet_session* session, size_t index, int64_t* order);

/* Runs. Tensors are in memory of the handle's device, or of the host, from and to which they are copied, and are
 * checked as cermet_op_run does; the sizes that runs give come from the inputs' shapes, which must agree. Trailing
 * dimensions of inputs are contiguous, leading ones may be strided where the operators that read them take it.
 * `outputs` are dense, one per result; NULL, or with output_count 0 all of them: the result stays in the session's
 * memory, where cermet_session_result() finds it. A result that shares an input's memory is given as that tensor, or
 * NULL; that input is on the device. `stream` is as of cermet_op_run: on a GPU the work is enqueued on it and not
 * complete when this returns; with NULL it runs on the session's own stream and is complete, as it is where a result is
 * in memory of the host. Inputs in memory of the host are no longer read when this returns, unless they are pinned.
 * Runs on several streams must not overlap, because they use the same memory. Allocates nothing once a run of the same
 * sizes has been. */
CERMET_API cermet_status cermet_session_run(cermet_session* session, const DLTensor* const* inputs, size_t input_count,
                                            DLTensor* const* outputs, size_t output_count, void* stream);
/* A result of the last run in the session's memory, or the caller's where it was given, dense: in the order of the
 * run's stream, and valid, as the shape that it points to, until the next run. */
CERMET_API cermet_status cermet_session_result(cermet_session* session, size_t index, DLTensor* result);
/* The same as a copy in memory of the host that the caller keeps and frees by its deleter. Waits for the run. */
CERMET_API cermet_status cermet_session_result_copy(cermet_session* session, size_t index, DLManagedTensor** result);

/* What was compiled, as text: every compile step with its result, then one line for each launch: its place, operators,
 * kernel and weight layout. Valid until the session's next call; NULL where it fails. */
CERMET_API const char* cermet_session_explain(cermet_session* session);
/* Kernels that a run launches, and bytes of device memory (on the CPU: of host memory) of intermediate values and of
 * constants. */
CERMET_API size_t cermet_session_step_count(const cermet_session* session);
CERMET_API size_t cermet_session_arena_bytes(const cermet_session* session);
CERMET_API size_t cermet_session_constant_bytes(const cermet_session* session);

#ifdef __cplusplus
}
#endif

#endif /* CERMET_GRAPH_H_ */
