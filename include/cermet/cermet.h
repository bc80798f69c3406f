/* Cermet's C interface: operators on the caller's tensors, and models that generate text. C99, and the only binary
 * interface of libcermet.
 *
 * Errors. A function that can fail returns a cermet_status; cermet_last_error_message() then says which operand,
 * attribute, file or field was at fault, what was expected and what was found. No exception leaves the library. A call
 * that is rejected writes nothing; one that fails while it computes (an index out of range) may leave results half
 * written. Threads. A handle may be used from several threads. An operator or a model is used by one thread at a time.
 *
 * Tensors are DLPack's DLTensor, in memory of the handle's device: kDLCPU on the CPU, kDLCUDA with the GPU's index on a
 * GPU. Only the values of constants may also come from the host there. DLPack 0.6 has no type codes for fp8 and bool:
 * such tensors are passed as kDLUInt with 8 bits (the type codes of DLPack 1.x are accepted too), and the descriptor
 * given at creation says what the bytes are.
 *
 * Compatibility. Functions and the layout of cermet_descriptor, cermet_attribute, cermet_range, cermet_call_result,
 * cermet_tokens and cermet_generation do not change within a minor version. Structs of options begin with their size as
 * the caller compiled it, which the functions that fill in defaults set; members are added at their end, so a program
 * keeps working with a newer library, and an older library rejects members that it does not know. */
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
  CERMET_IO = 4,               /* an error of the operating system: missing file, no permission */
  CERMET_OUT_OF_MEMORY = 5,
  CERMET_CANCELLED = 6,
  CERMET_INTERNAL = 7 /* a bug in Cermet */
} cermet_status;

/* "0.1.0". */
CERMET_API const char* cermet_version(void);
/* "invalid_argument" and so on. */
CERMET_API const char* cermet_status_name(cermet_status status);
/* One line about the last call of this thread that failed; "" when none has. Valid until the thread's next failing
 * call. */
CERMET_API const char* cermet_last_error_message(void);

/* ---- Handle: a device and its threads
 * ---------------------------------------------------------------------------------------------------- */

typedef struct cermet_handle cermet_handle;

/* `device` is "cpu", "cuda" (or "cuda:1", the second GPU), or "null", which computes nothing: it checks and selects
 * everything as the CPU does, and "null:sm_90" checks, selects and compiles as a GPU of that compute capability does,
 * operands in kDLCUDA included, on a machine without one. On it cermet_op_run checks its operands, writes no result and
 * succeeds; models load, but calls that would return logits or tokens fail with CERMET_UNSUPPORTED. `threads` counts
 * the caller; 0 is one for each core. */
CERMET_API cermet_status cermet_create(const char* device, int32_t threads, cermet_handle** handle);
/* Operators and models made from the handle stay valid. NULL is allowed. */
CERMET_API void cermet_destroy(cermet_handle* handle);
/* Memory of the caller, for what graphs take: intermediate values, workspaces, copies of inputs, and constants, packed
 * or not, of sessions and weights that are made from here on. `allocate` returns memory of the handle's device, aligned
 * to 64 bytes, or NULL where it has none (CERMET_OUT_OF_MEMORY); `release` gets it back with its size, from any thread,
 * when no run uses it any more. Both are called until the last session is destroyed. NULL for both: the library's own
 * allocator. No other call for the handle may be in progress. */
typedef void* (*cermet_allocate)(size_t bytes, void* user);
typedef void (*cermet_release)(void* memory, size_t bytes, void* user);
CERMET_API cermet_status cermet_handle_set_allocator(cermet_handle* handle, cermet_allocate allocate,
                                                     cermet_release release, void* user);
/* 1 where operators and models compute; 0 on the null device. */
CERMET_API int32_t cermet_computes(const cermet_handle* handle);
/* Number of threads. */
CERMET_API int32_t cermet_threads(const cermet_handle* handle);
/* "cpu (2 threads, avx512_bf16)"; valid as long as the handle. */
CERMET_API const char* cermet_device(const cermet_handle* handle);

/* Number of devices that compute on this machine, and the name of one, which cermet_create takes: "cpu", then "cuda:0",
 * "cuda:1" ...; NULL for an index that is too large. Valid for the life of the process. */
CERMET_API size_t cermet_device_count(void);
CERMET_API const char* cermet_device_name(size_t index);
/* Why no GPU is among them, in one line; "" where one is. Valid for the life of the process. */
CERMET_API const char* cermet_no_cuda(void);

/* ---- Log
 * -----------------------------------------------------------------------------------------------------------------------------------
 */

typedef enum cermet_log_level {
  CERMET_LOG_DEBUG = 0,
  CERMET_LOG_INFO = 1,
  CERMET_LOG_WARNING = 2,
  CERMET_LOG_ERROR = 3
} cermet_log_level;

/* `message`: one line without its end, valid during the call. May be called from any thread, by one at a time; must not
 * call Cermet. */
typedef void (*cermet_log_callback)(void* user, cermet_log_level level, const char* message);
/* Messages of `level` and above go to `callback` instead of standard error, for the whole process, until the next call;
 * NULL: to standard error at the level of CERMET_LOG again. No message is being passed to the old callback when this
 * returns. */
CERMET_API void cermet_set_log(cermet_log_callback callback, void* user, cermet_log_level level);

/* ---- Schemas
 * -------------------------------------------------------------------------------------------------------------------------------
 */

/* Number of operators, and the name of one; NULL for an index that is too large. */
CERMET_API size_t cermet_op_count(void);
CERMET_API const char* cermet_op_name(size_t index);
/* An operator's schema as JSON: name, category, summary, semantics, inputs, outputs, attributes, kernels, example.
 * Valid for the life of the process; NULL where no operator has the name (cermet_last_error_message() lists similar
 * ones). */
CERMET_API const char* cermet_op_schema(const char* name);

/* ---- Operators
 * -----------------------------------------------------------------------------------------------------------------------------
 */

typedef struct cermet_op cermet_op;

/* What an operand will be. The last dimension is contiguous; leading ones may be strided (a slice of a larger tensor).
 * A dimension is a number, or CERMET_DIM('M') for one that varies from run to run, where cermet_op_create_ranged gives
 * 'M' a range. Matrices of some operands may also lie transposed, the last two strides being (1, columns): a and b of
 * matmul, whose products then take them so, and b of scaled_mm, whose memory is always [N, K] and which [K, N] with
 * strides (1, K) describes as well (torch._scaled_mm). Its scales of blocks may lie by columns, too. The schema of such
 * an operand has "may_lie_transposed". Strides decide, never sizes. */
#define CERMET_DIM(symbol) (-(int64_t)(symbol))

typedef struct cermet_descriptor {
  const char* dtype; /* "f32", "bf16", "f16", "f8_e4m3", "f8_e5m2", "i8", "i32", "i64", "bool" ...; NULL: the optional
                        operand is not given */
  int32_t ndim;      /* at most 8 */
  const int64_t* shape;   /* ndim dimensions, in elements; may be NULL when ndim is 0 */
  const int64_t* strides; /* in elements, which the operand must then have exactly; NULL: any legal ones */
  int32_t is_constant; /* not 0: given once by cermet_op_set_constant, in the layout that the kernel prefers (prepacked
                          weights) */
} cermet_descriptor;

typedef enum cermet_attribute_kind {
  CERMET_BOOL = 0,
  CERMET_INT = 1,
  CERMET_FLOAT = 2,
  CERMET_STRING = 3,
  CERMET_INTS = 4,
  CERMET_FLOATS = 5,
  CERMET_STRINGS = 6
} cermet_attribute_kind;

/* A named value; `kind` says which member holds it. An integer is accepted where a float is expected. */
typedef struct cermet_attribute {
  const char* name;
  cermet_attribute_kind kind;
  int64_t integer; /* CERMET_INT; CERMET_BOOL: 0 or 1 */
  double number;
  const char* string;
  const int64_t* integers;
  size_t count;               /* of the list that `kind` names */
  const double* numbers;      /* CERMET_FLOATS */
  const char* const* strings; /* CERMET_STRINGS */
} cermet_attribute;

/* A dimension that varies: a capital letter, and the largest value that it may take (1 to 2^31 - 1; the least is 0). */
typedef struct cermet_range {
  char symbol;
  int64_t maximum;
} cermet_range;

/* Validates operands and attributes against the schema, infers the results and chooses a kernel. */
CERMET_API cermet_status cermet_op_create(cermet_handle* handle, const char* name, const cermet_descriptor* inputs,
                                          size_t input_count, const cermet_attribute* attributes,
                                          size_t attribute_count, cermet_op** op);
/* The same with dimensions that vary. One operator then runs for every value in its ranges: nothing is selected,
 * compiled or packed after creation. A run takes the values from the shapes of its operands, which must agree on them.
 * Kernels are chosen for values of the first range of 1, of up to 32, and of up to its maximum, so list the number of
 * rows first; workspace is sized for the maxima. Constants have no dimension that varies. Some operators need some
 * dimensions to be known; the message names them. */
CERMET_API cermet_status cermet_op_create_ranged(cermet_handle* handle, const char* name,
                                                 const cermet_descriptor* inputs, size_t input_count,
                                                 const cermet_attribute* attributes, size_t attribute_count,
                                                 const cermet_range* ranges, size_t range_count, cermet_op** op);
/* NULL is allowed. */
CERMET_API void cermet_op_destroy(cermet_op* op);

/* Number of results, and the type of one: dtype, ndim and shape, with every range at its maximum; strides are NULL. The
 * pointers are valid as long as the operator. */
CERMET_API size_t cermet_op_output_count(const cermet_op* op);
CERMET_API cermet_status cermet_op_output(const cermet_op* op, size_t index, cermet_descriptor* output);
/* The shape of a result for these inputs, as ndim of cermet_op_output numbers. Of the tensors only the shapes are read,
 * and only of operands that have a dimension in a range. */
CERMET_API cermet_status cermet_op_output_shape(const cermet_op* op, size_t index, const DLTensor* const* inputs,
                                                size_t input_count, int64_t* shape);
/* Index of the input whose memory a result shares (state that is updated in place), or -1. Pass the same memory for
 * both. */
CERMET_API int32_t cermet_op_output_alias(const cermet_op* op, size_t index);
/* Name of the chosen kernel, with every range at its maximum; valid for the life of the process. */
CERMET_API const char* cermet_op_kernel(const cermet_op* op);
/* Bytes of scratch memory that cermet_op_run needs. */
CERMET_API size_t cermet_op_workspace_size(const cermet_op* op);

/* Gives the value of an operand that was declared constant, in memory of the host or of the handle's device, complete
 * (no stream is still writing it). It is copied; the tensor may be freed afterwards. May be called again while no run
 * is in progress. */
CERMET_API cermet_status cermet_op_set_constant(cermet_op* op, size_t input, const DLTensor* tensor);

/* A constant that several operators share: one copy in memory for each layout that their kernels need: on the CPU a
 * single one for linear and related operators whatever the number of rows, on a GPU the row-major one. */
typedef struct cermet_weight cermet_weight;

/* `tensor` is as for cermet_op_set_constant, but not copied: its memory must stay until cermet_weight_detach or
 * cermet_weight_destroy. `dtype` names the element type; NULL: that of the tensor, which for bytes is "u8". */
CERMET_API cermet_status cermet_weight_create(cermet_handle* handle, const DLTensor* tensor, const char* dtype,
                                              cermet_weight** weight);
/* Gives an operator of the same handle the value of an operand that was declared constant, of exactly the weight's type
 * and shape. The first operator that needs a layout makes the copy; the others reuse it. Operators keep what they use:
 * the weight may be destroyed afterwards. */
CERMET_API cermet_status cermet_op_set_weight(cermet_op* op, size_t input, cermet_weight* weight);
/* The tensor's memory is no longer read and may be freed. Operators that need a layout not used before are rejected
 * from now on. */
CERMET_API void cermet_weight_detach(cermet_weight* weight);
/* Bytes of device memory (on the CPU: of host memory) that the weight's copies take. */
CERMET_API size_t cermet_weight_bytes(const cermet_weight* weight);
/* NULL is allowed. */
CERMET_API void cermet_weight_destroy(cermet_weight* weight);

/* Runs the operator. `inputs` and `outputs` hold one pointer per operand and result, NULL for an optional operand that
 * is not given and for constants. Every tensor is checked against its descriptor: device, element type, shape, strides,
 * alignment to its element, null data, and memory that a result would share with another tensor (a result may be
 * exactly one of the inputs where each of its elements depends on that input's same element only, and where the
 * operator's page says that it may overwrite it). Memory is shared where elements are: views that interleave in one
 * allocation are apart. Results may have any strides that keep their elements apart, the last dimension being
 * contiguous. `workspace` is 64-byte aligned memory of at least cermet_op_workspace_size bytes, or NULL with size 0, in
 * which case the operator allocates it at the first run and keeps it. Allocates nothing else. Tensors and workspace are
 * in memory of the handle's device. `stream` is NULL on the CPU. On a GPU it is a CUstream or cudaStream_t of the
 * device's primary context, on which the work is enqueued, in order and not yet complete when this returns; with NULL
 * the work runs on the handle's own stream and is complete when this returns. One operator's runs use one workspace: on
 * several streams they must not overlap. */
CERMET_API cermet_status cermet_op_run(cermet_op* op, const DLTensor* const* inputs, size_t input_count,
                                       DLTensor* const* outputs, size_t output_count, void* workspace,
                                       size_t workspace_size, void* stream);

/* The same for operators without ranges, whose operands are known from creation but for their addresses: those of first
 * elements, in the order of operands and results. Operands have their descriptors' shapes and strides, or are dense
 * where strides were NULL; results are dense. NULL stands for an optional operand that was not given, and for a
 * constant. Checks what an address can tell: NULL, alignment, shared memory. */
CERMET_API cermet_status cermet_op_run_pointers(cermet_op* op, const void* const* inputs, size_t input_count,
                                                void* const* outputs, size_t output_count, void* workspace,
                                                size_t workspace_size, void* stream);

/* ---- Models
 * --------------------------------------------------------------------------------------------------------------------------------
 */

typedef struct cermet_model cermet_model;

/* Start from cermet_model_defaults(). docs/reference/options.md describes every option. NULL is the default. */
typedef struct cermet_model_options {
  size_t struct_size;               /* sizeof(cermet_model_options) where it was compiled */
  const char* dtype;                /* "f32", "bf16" or "f16" */
  const char* weights;              /* "f32", "bf16", "f16", or "i8" and "f8_e4m3" (also "int8", "fp8") */
  const char* kv_cache;             /* "i8" or "f8_e4m3" */
  int64_t max_context;              /* 0: what the model allows, at most 4096 */
  int64_t max_sequences;            /* sequences of one batch */
  int64_t max_batch_tokens;         /* tokens of one forward pass */
  int32_t stored_rope_frequencies;  /* not 0: rope_frequencies "stored" */
  const char* super_kernel;         /* "decode", "layer", "NAME:PATTERN" or "none" (docs/guide/super-kernels.md) */
  const char* super_kernel_options; /* "key=value:key=value" of what super_kernel selects */
  int64_t steps_per_launch;         /* 1 to 256; not with a repetition penalty (docs/guide/super-kernels.md) */
  const char* head;                 /* "i8" or "f8_e4m3", whatever `weights` says (docs/guide/run-quantized.md) */
  int32_t compact_weights;          /* 0 or 1; refused on the CPU (docs/guide/compact-weights.md) */
  const char* options; /* "name=value;name=value": any option by name, flags as 0 or 1, after the members above. An
                          unknown name, one given twice and a value that the option does not take are refused */
} cermet_model_options;

/* The options that `options` takes, of cermet_model_options and of cermet_generate_options, as JSON: {"model":
 * [{"name", "type", "names", "least", "values", "default", "help"}, ..], "generate": [..]}. Valid as long as the
 * library. */
CERMET_API const char* cermet_option_rows(void);

/* Fills in the defaults; struct_size is sizeof(cermet_model_options). For languages that do not compile this header. */
CERMET_API void cermet_model_options_init(cermet_model_options* options, size_t struct_size);

static inline cermet_model_options cermet_model_defaults(void) {
  cermet_model_options options;
  cermet_model_options_init(&options, sizeof options);
  return options;
}

/* Reads a checkpoint folder (config.json, safetensors and, if present, tokenizer.json) for the handle's device and
 * number of threads. Weights and cache are in the device's memory; tokens go in and logits come out in the host's on
 * every device. `options` may be NULL for the defaults. */
CERMET_API cermet_status cermet_model_load(cermet_handle* handle, const char* folder,
                                           const cermet_model_options* options, cermet_model** model);
/* A batch on the model keeps it, and its memory, until the batch is destroyed. NULL is allowed. */
CERMET_API void cermet_model_destroy(cermet_model* model);
/* JSON: architecture, layers, sizes, vocab_size, dtype, device, computes (false on the null device), weight_bytes,
 * cache_bytes, bos_id, eos_ids, has_tokenizer. Valid as long as the model. */
CERMET_API const char* cermet_model_info(const cermet_model* model);
/* Number of logits of a position. */
CERMET_API size_t cermet_model_vocab_size(const cermet_model* model);

/* Text (any bytes) to ids. Writes the first `capacity` ids and sets `count` to their total number, so that a call with
 * capacity 0 returns the size needed. `add_special`: not 0 puts the tokenizer's template around the text, as models
 * expect of a prompt. */
CERMET_API cermet_status cermet_model_tokenize(const cermet_model* model, const char* text, size_t length,
                                               int32_t add_special, int32_t* ids, size_t capacity, size_t* count);
/* Ids to text in UTF-8 without a terminating zero: the first `capacity` bytes, and the total number in `length`.
 * `skip_special`: not 0 leaves special tokens out. */
CERMET_API cermet_status cermet_model_detokenize(const cermet_model* model, const int32_t* ids, size_t count,
                                                 int32_t skip_special, char* text, size_t capacity, size_t* length);

/* New tokens of one sequence, which is a slot below max_sequences with a context of its own. */
typedef struct cermet_tokens {
  int32_t sequence;
  const int32_t* ids;
  size_t count;
} cermet_tokens;

/* Appends tokens to one or several sequences in one pass, in sequence 0 after all that cermet_model_generate has said.
 * `logits` gets float32 rows of vocab_size, valid until the model's next call: of every new token in order (`all` not
 * 0), or of each sequence's last one; `rows` gets their number. */
CERMET_API cermet_status cermet_model_forward(cermet_model* model, const cermet_tokens* batch, size_t sequences,
                                              int32_t all, const float** logits, size_t* rows);
/* Logits of every position of ids[0, count) after an empty context, as float32 rows: `logits` has room for count *
 * vocab_size. Uses and empties sequence 0. */
CERMET_API cermet_status cermet_model_logits(cermet_model* model, const int32_t* ids, size_t count, float* logits);
/* Tokens of context that a sequence holds; -1 for a slot that does not exist. */
CERMET_API int64_t cermet_model_length(const cermet_model* model, int32_t sequence);
/* Clears a sequence's context. */
CERMET_API cermet_status cermet_model_reset(cermet_model* model, int32_t sequence);

/* Start from cermet_generate_defaults(): 128 tokens, greedy. */
typedef struct cermet_generate_options {
  size_t struct_size; /* sizeof(cermet_generate_options) where it was compiled */
  int64_t max_new_tokens;
  double temperature;        /* 0: always the most likely token */
  int32_t top_k;             /* 0: all */
  double top_p;              /* in (0, 1] */
  double min_p;              /* in [0, 1] */
  double repetition_penalty; /* > 0; 1: none */
  uint64_t seed;             /* the same seed gives the same tokens */
  int32_t ignore_eos;        /* not 0: the model's end-of-text tokens do not end generation */
  const char* options;       /* "name=value;name=value", as in cermet_model_options; NULL: none */
} cermet_generate_options;

/* Fills in the defaults; struct_size is sizeof(cermet_generate_options). For languages that do not compile this header.
 */
CERMET_API void cermet_generate_options_init(cermet_generate_options* options, size_t struct_size);

static inline cermet_generate_options cermet_generate_defaults(void) {
  cermet_generate_options options;
  cermet_generate_options_init(&options, sizeof options);
  return options;
}

typedef enum cermet_end {
  CERMET_END_LENGTH = 0,
  CERMET_END_STOP = 1,
  CERMET_END_CONTEXT = 2,
  CERMET_END_CANCELLED = 3
} cermet_end;

typedef struct cermet_generation {
  size_t prompt_tokens, new_tokens;
  double prefill_seconds, decode_seconds; /* decode counts the tokens after the first */
  cermet_end end; /* why it ended: max_new_tokens, an end-of-text token, a full context, the callback */
} cermet_generation;

/* Called with every new token as it is generated, with the text that it completes (`length` bytes of UTF-8; nothing
 * while a character is incomplete, or where the model has no tokenizer). After the last token, text that was held back
 * is passed with id -1. Anything but 0 ends generation. */
typedef int32_t (*cermet_token_callback)(void* user, int32_t id, const char* text, size_t length);

/* Continues sequence 0, which keeps its context between calls, with the prompt and then with new tokens: all that was
 * said, also the last token of an answer that its length cut off, and a repetition penalty knows earlier turns, too.
 * `options`, `callback` and `result` may be NULL. */
CERMET_API cermet_status cermet_model_generate(cermet_model* model, const int32_t* prompt, size_t count,
                                               const cermet_generate_options* options, cermet_token_callback callback,
                                               void* user, cermet_generation* result);

#ifdef __cplusplus
}
#endif

#include <cermet/batch.h>  /* many prompts at once */
#include <cermet/get_op.h> /* operators by name, for tensors of any shape */
#include <cermet/values.h> /* descriptors and attributes in short */

#endif /* CERMET_CERMET_H_ */
