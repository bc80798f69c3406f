/* Cermet's C interface: operators on tensors of the caller, and models that generate text. C99, and the only binary interface of libcermet.
 *
 * Errors. A function that can fail returns a cermet_status; cermet_last_error_message() then says which operand, attribute, file or field was
 * at fault, what was expected and what was found. No exception leaves the library. A call that is refused writes nothing; one that fails while
 * it computes (an index out of range) may leave results half written.
 *
 * Threads. A handle may be used from several threads. An operator or a model is used by one thread at a time.
 *
 * Tensors are DLPack's DLTensor in host memory (kDLCPU). DLPack 0.6 has no codes for fp8 and bool: such tensors are passed as kDLUInt with 8
 * bits (the codes of DLPack 1.x are accepted too), and the descriptor given at creation says what the bytes are. */
#ifndef CERMET_CERMET_H_
#define CERMET_CERMET_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#define CERMET_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cermet_status {
  CERMET_OK = 0,
  CERMET_INVALID_ARGUMENT = 1, /* the caller passed something that is not accepted */
  CERMET_INVALID_FILE = 2,     /* a file's content breaks its format */
  CERMET_UNSUPPORTED = 3,      /* well-formed, but nothing implements it */
  CERMET_IO = 4,               /* the operating system refused: absent file, no permission */
  CERMET_OUT_OF_MEMORY = 5,
  CERMET_CANCELLED = 6,
  CERMET_INTERNAL = 7 /* a bug of Cermet */
} cermet_status;

/* "0.1.0". */
CERMET_API const char* cermet_version(void);
/* "invalid_argument" and so on. */
CERMET_API const char* cermet_status_name(cermet_status status);
/* One line about the last call of this thread that failed; "" when none has. Valid until the thread's next failing call. */
CERMET_API const char* cermet_last_error_message(void);

/* ---- Handle: a device and its threads ---------------------------------------------------------------------------------------------------- */

typedef struct cermet_handle cermet_handle;

/* `device` is "cpu", or "null", which checks and selects everything and computes nothing. `threads` counts the caller; 0 is one for each core. */
CERMET_API cermet_status cermet_create(const char* device, int32_t threads, cermet_handle** handle);
/* Operators and models made from the handle stay valid. NULL is allowed. */
CERMET_API void cermet_destroy(cermet_handle* handle);
/* Number of threads. */
CERMET_API int32_t cermet_threads(const cermet_handle* handle);
/* "cpu (2 threads, avx512_bf16)"; valid as long as the handle. */
CERMET_API const char* cermet_device(const cermet_handle* handle);

/* ---- Schemas ------------------------------------------------------------------------------------------------------------------------------- */

/* Number of operators, and the name of one; NULL for an index that is too large. */
CERMET_API size_t cermet_op_count(void);
CERMET_API const char* cermet_op_name(size_t index);
/* An operator's schema as JSON: name, category, summary, semantics, inputs, outputs, attributes, kernels, example. Valid for the life of the
 * process; NULL where no operator has the name (cermet_last_error_message() lists near ones). */
CERMET_API const char* cermet_op_schema(const char* name);

/* ---- Operators ----------------------------------------------------------------------------------------------------------------------------- */

typedef struct cermet_op cermet_op;

/* What an operand will be. The last dimension is contiguous; leading ones may be strided (a slice of a larger tensor). */
typedef struct cermet_descriptor {
  const char* dtype;      /* "f32", "bf16", "f16", "f8_e4m3", "f8_e5m2", "i8", "i32", "i64", "bool" ...; NULL: the optional operand is not given */
  int32_t ndim;           /* at most 8 */
  const int64_t* shape;   /* ndim dimensions; may be NULL when ndim is 0 */
  const int64_t* strides; /* in elements, and then the operand must come with exactly these; NULL: any legal ones */
  int32_t is_constant;    /* not 0: given once by cermet_op_set_constant, in the form that the kernel likes best (prepacked weights) */
} cermet_descriptor;

typedef enum cermet_attribute_kind { CERMET_BOOL = 0, CERMET_INT = 1, CERMET_FLOAT = 2, CERMET_STRING = 3, CERMET_INTS = 4 } cermet_attribute_kind;

/* A named value; `kind` says which member holds it. An integer is accepted where a float is expected. */
typedef struct cermet_attribute {
  const char* name;
  cermet_attribute_kind kind;
  int64_t integer; /* CERMET_INT; CERMET_BOOL: 0 or 1 */
  double number;
  const char* string;
  const int64_t* integers;
  size_t integer_count;
} cermet_attribute;

/* Validates operands and attributes against the schema, infers the results and chooses a kernel. */
CERMET_API cermet_status cermet_op_create(cermet_handle* handle, const char* name, const cermet_descriptor* inputs, size_t input_count,
                                          const cermet_attribute* attributes, size_t attribute_count, cermet_op** op);
/* NULL is allowed. */
CERMET_API void cermet_op_destroy(cermet_op* op);

/* Number of results, and the type of one: dtype, ndim and shape; strides are NULL. The pointers are valid as long as the operator. */
CERMET_API size_t cermet_op_output_count(const cermet_op* op);
CERMET_API cermet_status cermet_op_output(const cermet_op* op, size_t index, cermet_descriptor* output);
/* Index of the input whose memory a result shares (state that is updated in place), or -1. Pass the same memory for both. */
CERMET_API int32_t cermet_op_output_alias(const cermet_op* op, size_t index);
/* Name of the chosen kernel; valid for the life of the process. */
CERMET_API const char* cermet_op_kernel(const cermet_op* op);
/* Bytes of scratch memory that cermet_op_run wants. */
CERMET_API size_t cermet_op_workspace_size(const cermet_op* op);

/* Gives the value of an operand that was declared constant. It is copied; the tensor may go afterwards. May be called again. */
CERMET_API cermet_status cermet_op_set_constant(cermet_op* op, size_t input, const DLTensor* tensor);

/* Computes. `inputs` and `outputs` hold one pointer per operand and result, NULL for an optional operand that is not given and for constants.
 * Every tensor is checked against its descriptor: device, element type, shape, strides, alignment to its element, null data, and memory that a
 * result would share with another tensor (a result may be exactly one of the inputs where each of its elements depends on that input's same
 * element only). `workspace` is 64-byte aligned memory of at least cermet_op_workspace_size bytes, or NULL with size 0, in which case the
 * operator allocates it at the first run and keeps it. `stream` must be NULL: the CPU has none. Allocates nothing else. */
CERMET_API cermet_status cermet_op_run(cermet_op* op, const DLTensor* const* inputs, size_t input_count, DLTensor* const* outputs, size_t output_count,
                                       void* workspace, size_t workspace_size, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* CERMET_CERMET_H_ */
