/* What a kernel for CPUs includes: the function in its shared object. docs/guide/own-kernels.md shows one. */
#ifndef CERMET_CPU_KERNEL_H_
#define CERMET_CPU_KERNEL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One call. Parameters are those of the manifest, in its order: parameters[i] is the address of the i-th, so that a
 * pointer to floats is
 * *(float* const*)call->parameters[0] and a size of kind i64 is *(const int64_t*)call->parameters[1]. They are valid
 * during the call. */
typedef struct cermet_cpu_call {
  size_t struct_size; /* sizeof(cermet_cpu_call) of the library; members are added at the end only */
  void* const* parameters;
  size_t parameter_count;
  int32_t threads; /* that parallel_for uses, the caller's included */
  /* Calls body(state, begin, end) over [0, count) in pieces whose bounds are multiples of `grain`, on all threads, and
   * returns when all have ended. Not to be called by a body. */
  void (*parallel_for)(const struct cermet_cpu_call* call, int64_t count, int64_t grain,
                       void (*body)(void* state, int64_t begin, int64_t end), void* state);
  void* runtime; /* the library's */
} cermet_cpu_call;

/* The function that the manifest names. 0: done; anything else ends the run with an error that shows the number. No
 * exception may leave it. */
typedef int32_t (*cermet_cpu_kernel)(const cermet_cpu_call* call);

#ifdef __cplusplus
}
#endif

#endif /* CERMET_CPU_KERNEL_H_ */
