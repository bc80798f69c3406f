/* Part of cermet.h: operators by name, for tensors as they come. A callable keeps what it chose for the element types
 * and shapes that it has met, so that a call of a shape that it knows costs a look-up. Errors, tensors and streams are
 * as described in cermet.h. A callable is used by one thread at a time; several callables of one handle may be made and
 * called by several threads at the same time. */
#ifndef CERMET_GET_OP_H_
#define CERMET_GET_OP_H_

#include <cermet/cermet.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cermet_callable cermet_callable;

/* Start from cermet_get_op_defaults(). Arrays have one entry for each input of cermet_get_op. */
typedef struct cermet_get_op_options {
  size_t struct_size; /* sizeof(cermet_get_op_options) where it was compiled */
  const char*
      kernel; /* name of a kernel as `cermet ops NAME` lists them, for every call; NULL: the cheapest for each shape */
  const char* config; /* fields of the kernel's configuration: "tile_m=64 stages=4"; NULL: the cheapest */
  uint64_t
      constants; /* bit i: input i is constant, with the sample as its value; it is packed as the kernels need it */
  cermet_weight* const* weights; /* input i is this constant, shared with other operators, where not NULL; NULL: none */
  const char* const* dtypes;     /* element type of input i ("f8_e4m3"), where its DLPack type does not say it; NULL
                                    entries, and NULL: as DLPack says */
} cermet_get_op_options;

/* Fills in the defaults; struct_size is sizeof(cermet_get_op_options). For languages that do not compile this header.
 */
CERMET_API void cermet_get_op_options_init(cermet_get_op_options* options, size_t struct_size);

static inline cermet_get_op_options cermet_get_op_defaults(void) {
  cermet_get_op_options options;
  cermet_get_op_options_init(&options, sizeof options);
  return options;
}

/* An operator for tensors like these samples: validates them and the attributes, infers the results, chooses a kernel
 * and, on a GPU, compiles it. Of a sample only element type and shape are read, and the memory of constants, on the
 * host or on the handle's device, which must stay as it is until the callable is destroyed (that of a cermet_weight,
 * until it is detached). NULL stands for an optional operand that is not given, and is allowed for one in `weights`.
 * DLPack 0.6 has no codes for bool and fp8: bytes (kDLUInt, 8 bits) are u8 where the operator takes it, else bool where
 * it takes that; the codes of DLPack 1.x say it, and so does `dtypes`. `options` may be NULL for the defaults. The
 * handle may be destroyed before the callable.
 *
 * What was chosen is kept by the callable for its calls, and by the handle for other callables of the same operator,
 * attributes and options. Both know it by the element types and dimensions of the inputs and by which are given.
 * Dimensions that count rows or sequences, which are leading dimensions of the first input and of the inputs that share
 * them, fall into ranges that end at powers of two: 0 to 1, 2, 3 to 4, 5 to 8 and so on. Within a range nothing is
 * chosen or compiled again. A dimension is in a range only where that leaves the kernel and its configuration as they
 * are for the range's end. The same types and shapes give the same kernel, whatever came before. Strides and addresses
 * are not part of it: every kernel takes all that cermet_op_run accepts. */
CERMET_API cermet_status cermet_get_op(cermet_handle* handle, const char* name, const DLTensor* const* inputs,
                                       size_t input_count, const cermet_attribute* attributes, size_t attribute_count,
                                       const cermet_get_op_options* options, cermet_callable** callable);
/* NULL is allowed. On a GPU no call may still be running. */
CERMET_API void cermet_callable_destroy(cermet_callable* callable);

/* Runs the operator on these inputs, with the kernel for their types and shapes; NULL for constants and for optional
 * operands that are not given. Every tensor is checked as cermet_op_run does. Results are in the caller's memory, of
 * the types and shapes that cermet_call_output gives. The first call in a range of shapes chooses and, on a GPU,
 * compiles; later ones allocate nothing, take no lock and compare no strings. Scratch memory is the callable's own: it
 * grows at first calls, and calls on several streams must not overlap. */
CERMET_API cermet_status cermet_call(cermet_callable* callable, const DLTensor* const* inputs, size_t input_count,
                                     DLTensor* const* outputs, size_t output_count, void* stream);

/* A result of a call. */
typedef struct cermet_call_result {
  const char* dtype; /* "bf16"; valid for the life of the process */
  DLDataType type;   /* the same as DLPack 0.6 has it: kDLUInt with 8 bits for bool and fp8 */
  int32_t ndim;
  int32_t shared_input; /* the input whose memory it must be (state that is updated in place), or -1 */
  int64_t shape[8];
} cermet_call_result;

/* Number of results of a call with these inputs; only operators that split an operand have a number that varies. */
CERMET_API cermet_status cermet_call_output_count(cermet_callable* callable, const DLTensor* const* inputs,
                                                  size_t input_count, size_t* count);
/* A result of a call with these inputs, of which only types and shapes are read. Costs a look-up, which the call then
 * finds done. */
CERMET_API cermet_status cermet_call_output(cermet_callable* callable, const DLTensor* const* inputs,
                                            size_t input_count, size_t index, cermet_call_result* result);

/* How many trailing dimensions of every tensor of such a call must be contiguous among themselves: 1 for most
 * operators. Costs what cermet_call_output does. */
CERMET_API cermet_status cermet_call_dense_dims(cermet_callable* callable, const DLTensor* const* inputs,
                                                size_t input_count, int32_t* count);

/* Kernel and configuration of the last call, before one of the samples'. The name is valid for the life of the process,
 * the configuration, as `config` of the options takes it, until the callable's next call. */
CERMET_API const char* cermet_callable_kernel(const cermet_callable* callable);
CERMET_API const char* cermet_callable_config(const cermet_callable* callable);
/* Kernels that the callable has bound so far, one for each set of types and shapes that is not in the range of another.
 */
CERMET_API size_t cermet_callable_bound_count(const cermet_callable* callable);

#ifdef __cplusplus
}
#endif

#endif /* CERMET_GET_OP_H_ */
