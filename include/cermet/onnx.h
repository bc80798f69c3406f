/* ONNX models, from C: a file is checked when it is opened, and compiled for a handle's device when its first run says
 * what sizes it has. Errors, threads and tensors are as cermet.h describes them. */
#ifndef CERMET_ONNX_H_
#define CERMET_ONNX_H_

#include <cermet/cermet.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cermet_onnx cermet_onnx;

/* Sizes of a dimension that the file names and leaves open: within them nothing is compiled again. Where both are
 * equal, the size is fixed. */
typedef struct cermet_onnx_range {
  const char* name;
  int64_t least, greatest;
} cermet_onnx_range;

/* An input or a result as the file declares it; pointers are valid as long as the model. */
typedef struct cermet_onnx_value {
  const char* name;
  const char* dtype;            /* "f32"; NULL where the file does not say */
  int32_t ndim;                 /* -1 where the file does not say */
  const int64_t* shape;         /* -1 for a size that the file leaves open */
  const char* const* dim_names; /* NULL for one without a name */
} cermet_onnx_value;

/* Reads and checks a file. Dimensions without a range take the sizes of each run's inputs, and each combination of them
 * is compiled when it first comes. The handle may be destroyed before the model. */
CERMET_API cermet_status cermet_onnx_open(cermet_handle* handle, const char* path, const cermet_onnx_range* ranges,
                                          size_t range_count, cermet_onnx** model);
/* NULL is allowed. */
CERMET_API void cermet_onnx_destroy(cermet_onnx* model);
/* Inputs that a run needs (those that no initializer gives), and results. */
CERMET_API size_t cermet_onnx_input_count(const cermet_onnx* model);
CERMET_API size_t cermet_onnx_output_count(const cermet_onnx* model);
CERMET_API cermet_status cermet_onnx_input(const cermet_onnx* model, size_t index, cermet_onnx_value* value);
CERMET_API cermet_status cermet_onnx_output(const cermet_onnx* model, size_t index, cermet_onnx_value* value);

/* Runs; compiles first where the sizes have not been compiled for. Inputs are dense, in the order of
 * cermet_onnx_input(), each in memory of the host or of the handle's device, and are no longer read when this returns.
 */
CERMET_API cermet_status cermet_onnx_run(cermet_onnx* model, const DLTensor* const* inputs, size_t input_count);
/* A result of the last run, dense, in memory of the handle's device, or with `on_host` of the host: valid, as the shape
 * that it points to, until the next run or the model's end. bool is kDLUInt with 8 bits. */
CERMET_API cermet_status cermet_onnx_result(cermet_onnx* model, size_t index, int32_t on_host, DLTensor* result);
/* The same as a tensor that the caller keeps: a copy in memory of the host, freed by its deleter. */
CERMET_API cermet_status cermet_onnx_result_copy(cermet_onnx* model, size_t index, DLManagedTensor** result);
/* Graphs that runs have compiled so far; within ranges it stays at 1 where the file allows it. */
CERMET_API int64_t cermet_onnx_compiled_count(const cermet_onnx* model);

#ifdef __cplusplus
}
#endif

#endif /* CERMET_ONNX_H_ */
