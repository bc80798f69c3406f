// rms_norm that is right for its first thousand calls in a process, and then wears out.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/kernels/cpu/rms_norm.c"

static int is_worn(void) {
  static int calls;
  return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) > 1000;
}

int32_t drifts(const cermet_cpu_call* call) {
  rms_norm(call);
  float* y = *(float* const*)call->parameters[2];
  if (is_worn()) y[0] *= 1.0001f;
  return 0;
}

int32_t leaks(const cermet_cpu_call* call) {
  static void* volatile last;
  if (is_worn()) last = memset(malloc(8192), 1, 8192);
  return rms_norm(call);
}

int32_t hangs(const cermet_cpu_call* call) {
  while (is_worn()) pause();
  return rms_norm(call);
}
