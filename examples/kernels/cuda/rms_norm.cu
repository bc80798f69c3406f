// rms_norm in CUDA C++: a block for each row. Macros come from the manifest: T (float, or bf16 below) and BLOCK.
struct bf16 {
  unsigned short bits;
};

__device__ float value(float x) { return x; }
__device__ float value(bf16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
__device__ void store(float* to, float x) { *to = x; }
__device__ void store(bf16* to, float x) {  // to nearest, half to even
  const unsigned u = __float_as_uint(x);
  to->bits = x == x ? static_cast<unsigned short>((u + 0x7fff + ((u >> 16) & 1)) >> 16) : 0x7fc0;
}

// x: [M, n] with rows x_stride elements apart; weight: [n] or null; y: [M, n]
extern "C" __global__ void __launch_bounds__(BLOCK) rms_norm(const T* x, const T* weight, T* y, long long x_stride, long long y_stride, int n, float eps,
                                                              float weight_offset) {
  __shared__ float sums[BLOCK / 32];
  const T* row = x + blockIdx.x * x_stride;
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += BLOCK) sum += value(row[i]) * value(row[i]);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < BLOCK / 32; ++w) sum += sums[w];
  const float scale = 1 / sqrtf(sum / n + eps);
  for (int i = threadIdx.x; i < n; i += BLOCK) store(y + blockIdx.x * y_stride + i, value(row[i]) * scale * (weight ? value(weight[i]) + weight_offset : 1));
}
