/* Kernels that others wrote, from C: added with a manifest, checked on their operator's cases, then candidates like
 * Cermet's own. Errors and threads are as cermet.h describes them; `cermet kernel` is the same on the command line, and
 * docs/guide/own-kernels.md describes manifests. */
#ifndef CERMET_KERNELS_H_
#define CERMET_KERNELS_H_

#include <cermet/cermet.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Start from cermet_kernel_defaults(). */
typedef struct cermet_kernel_options {
  size_t struct_size;  /* sizeof(cermet_kernel_options) where it was compiled */
  const char* device;  /* where to check: "cpu", "cuda", "cuda:1"; NULL: the CPU, or the GPU if there is one */
  const char* program; /* the command line, which runs a check in a process of its own; NULL: CERMET_PROGRAM, the one
                          beside the library, or that in PATH */
  int32_t seconds;     /* for each run, and for what is compiled before a case: 1 to 3600 */
  int32_t replace;     /* not 0: in place of an added kernel of the same name */
} cermet_kernel_options;

/* Fills in the defaults; struct_size is sizeof(cermet_kernel_options). For languages that do not compile this header.
 */
CERMET_API void cermet_kernel_options_init(cermet_kernel_options* options, size_t struct_size);

static inline cermet_kernel_options cermet_kernel_defaults(void) {
  cermet_kernel_options options;
  cermet_kernel_options_init(&options, sizeof options);
  return options;
}

/* Copies a manifest and its code into the cache folder, after a check wherever one can be made; one that fails is not
 * added, and the message says in which case, what was expected and what was found. Operators created afterwards may
 * choose it. `options` may be NULL. `report`, which may be NULL, gets JSON: kernel, operator, unchecked (why nothing
 * could run it here, or null; it is never chosen until it is checked), and where it was checked device, taken,
 * declined, runs. The text is valid until this thread's next call of a function of this header. */
CERMET_API cermet_status cermet_kernel_add(const char* manifest, const cermet_kernel_options* options,
                                           const char** report);
/* Checks one that was added, by name, and records what came out. */
CERMET_API cermet_status cermet_kernel_check(const char* name, const cermet_kernel_options* options,
                                             const char** report);
/* Deletes one that was added. Operators that use it keep it. */
CERMET_API cermet_status cermet_kernel_remove(const char* name);
/* JSON: folders, and kernels with name, folder, added, operator, kind, architectures and checks, as `cermet kernel list
 * --json` prints them. */
CERMET_API cermet_status cermet_kernel_list(const char** report);

#ifdef __cplusplus
}
#endif

#endif /* CERMET_KERNELS_H_ */
