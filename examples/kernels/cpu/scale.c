// mul of a float32 tensor by one number, for CPUs as a shared object: cc -O3 -shared -fPIC -I include scale.c -o
// scale.so
#include <cermet/cpu_kernel.h>

struct elements {
  const float* a;
  float *y, factor;
};

static void scale(void* state, int64_t begin, int64_t end) {
  const struct elements* e = state;
  for (int64_t i = begin; i < end; ++i) e->y[i] = e->a[i] * e->factor;
}

// Parameters in the order of the manifest.
int32_t mul(const cermet_cpu_call* call) {
  void* const* p = call->parameters;
  struct elements e = {*(const float* const*)p[0], *(float* const*)p[2], **(const float* const*)p[1]};
  call->parallel_for(call, *(const int64_t*)p[3], 1024, scale, &e);
  return 0;
}
