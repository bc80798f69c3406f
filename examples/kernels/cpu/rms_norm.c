// rms_norm for CPUs as a shared object: cc -O3 -shared -fPIC -I include rms_norm.c -lm -o rms_norm.so
#include <cermet/cpu_kernel.h>
#include <math.h>

struct rows {
  const float *x, *weight;  // weight may be null
  float* y;
  int64_t x_stride, y_stride, n;
  float eps, weight_offset;
};

static void normalize(void* state, int64_t begin, int64_t end) {
  const struct rows* r = state;
  for (int64_t m = begin; m < end; ++m) {
    const float* x = r->x + m * r->x_stride;
    float* y = r->y + m * r->y_stride;
    double sum = 0;
    for (int64_t i = 0; i < r->n; ++i) sum += (double)x[i] * x[i];
    const float scale = (float)(1 / sqrt(sum / (double)r->n + r->eps));
    for (int64_t i = 0; i < r->n; ++i) y[i] = x[i] * scale * (r->weight ? r->weight[i] + r->weight_offset : 1);
  }
}

// Parameters in the order of the manifest.
int32_t rms_norm(const cermet_cpu_call* call) {
  void* const* p = call->parameters;
  struct rows r = {*(const float* const*)p[0], *(const float* const*)p[1], *(float* const*)p[2], *(const int64_t*)p[4],
                   *(const int64_t*)p[5],      *(const int64_t*)p[6],      *(const float*)p[7],  *(const float*)p[8]};
  call->parallel_for(call, *(const int64_t*)p[3], 1, normalize, &r);
  return 0;
}
