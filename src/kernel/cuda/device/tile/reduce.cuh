// Sums and maxima over a warp or a block. Fixed order: the same configuration gives the same bits.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

struct Sum {
  static __device__ __forceinline__ float identity() { return 0.0f; }
  static __device__ __forceinline__ float combine(float a, float b) { return a + b; }
};
/// NaN where any operand is.
struct Maximum {
  static __device__ __forceinline__ float identity() { return -infinity(); }
  static __device__ __forceinline__ float combine(float a, float b) { return a > b || a != a ? a : b; }
};

/// Every lane gets the result over `Width` neighbouring lanes.
template <class Reduction, int Width = 32>
__device__ __forceinline__ float warp_reduce(float x) {
#pragma unroll
  for (int offset = Width / 2; offset > 0; offset /= 2) x = Reduction::combine(x, __shfl_xor_sync(0xffffffffu, x, offset, 32));
  return x;
}

/// Every thread gets the result over the block. `scratch`: one float for each warp, which no earlier call may still be reading
/// (two calls in a row take two scratch areas, or a barrier between them).
template <class Reduction, int Threads>
__device__ __forceinline__ float block_reduce(float x, float* scratch) {
  constexpr int warps = Threads / 32;
  x = warp_reduce<Reduction>(x);
  if constexpr (warps == 1) return x;
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
  __syncthreads();
  float y = threadIdx.x % 32 < warps ? scratch[threadIdx.x % 32] : Reduction::identity();
  y = warp_reduce<Reduction>(y);
  return y;
}

}  // namespace cermet
