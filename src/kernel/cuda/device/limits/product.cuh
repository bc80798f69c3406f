// How fast the arithmetic units are. Matrix units: operands in shared memory (wgmma) or registers (mma.sync), of which
// nothing is loaded meanwhile; they are random, because equal bits take less power and run faster than any data do.
#pragma once

#include "kernel/cuda/device/limits/limits.hpp"
#include "kernel/cuda/device/ptx/mma.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"
#include "kernel/cuda/device/types.cuh"

namespace cermet::limits {

/// 32 random bits as operands of magnitude around 1; any int8.
template <DType T>
CERMET_DEVICE uint32_t random_operands(uint32_t index) {
  uint32_t x = index * 0x9e3779b9u + 0x7f4a7c15u;
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  x ^= x >> 16;
  if constexpr (T == DType::f16 || T == DType::bf16)
    return (x & 0x83ff83ffu) | 0x3c003c00u;  // f16 in [1, 2), bf16 in [2^-7, 2), of either sign
  if constexpr (T == DType::f8_e4m3) return (x & 0x87878787u) | 0x38383838u;
  return x;
}

CERMET_DEVICE uint32_t bits_of(float x) { return __float_as_uint(x); }
CERMET_DEVICE uint32_t bits_of(int32_t x) { return static_cast<uint32_t>(x); }

template <class T>
struct AccumulatorOf {
  using type = float;
};
template <>
struct AccumulatorOf<int8_t> {
  using type = int32_t;
};

struct WarpgroupConfig {
  DType operand;
  int warpgroups;
};

/// Each warpgroup: d[64, 256] += a[64, 128 bytes] * b[256, 128 bytes]^T, p.steps times.
template <WarpgroupConfig C>
struct WarpgroupTask {
  using Params = ProductParams;
  using T = Element<C.operand>;
  using Accumulator = typename AccumulatorOf<T>::type;
  static constexpr int row_bytes = 128, m = 64, n = 256;
  static constexpr int a_bytes = m * row_bytes, b_bytes = n * row_bytes;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t, Team team, char* smem) {
#if CERMET_ARCH == 900 && defined(__CUDA_ARCH_FEAT_SM90_ALL)
    auto* words = reinterpret_cast<uint32_t*>(smem);
    for (int i = static_cast<int>(team.rank()); i < (C.warpgroups * a_bytes + b_bytes) / 4; i += C.warpgroups * 128)
      words[i] = random_operands<C.operand>(i);
    ptx::fence_async_shared();
    team.sync();
    const int warpgroup = __shfl_sync(0xffffffffu, static_cast<int>(team.rank()) / 128, 0);
    const uint64_t a = ptx::wgmma_descriptor(smem + b_bytes + warpgroup * a_bytes);  // [64, 128 bytes]
    const uint64_t b = ptx::wgmma_descriptor(smem);                                  // [256, 128 bytes]
    Accumulator d[n / 2];                                                            // of [64, 256]
#pragma unroll
    for (Accumulator& x : d) x = 0;
    for (uint32_t step = 0; step < p.steps; ++step) {
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < row_bytes / 32; ++k) ptx::Wgmma<n, T, T>::multiply(d, a + 2 * k, b + 2 * k, 1);
      ptx::wgmma_commit();
      ptx::wgmma_wait<1>();
    }
    ptx::wgmma_wait<0>();
    uint32_t seen = 0;
#pragma unroll
    for (Accumulator& x : d) {
      ptx::wgmma_touch(x);
      seen ^= bits_of(x);
    }
    if (seen == p.never) *static_cast<uint32_t*>(p.sink) = seen;
    team.sync();
#endif
  }
};

struct WarpConfig {
  DType operand;
};

/// Each warp: eight tiles d[16, 8] += a[16, 32 bytes] * b[8, 32 bytes]^T, p.steps times.
template <WarpConfig C>
struct WarpTask {
  using Params = ProductParams;
  using T = Element<C.operand>;
  using Accumulator = typename AccumulatorOf<T>::type;
  static constexpr int tiles = 8;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t, Team team, char*) {
#if CERMET_ARCH >= 750
    uint32_t a[4], b[tiles][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i] = random_operands<C.operand>(team.rank() * 4 + i);
#pragma unroll
    for (int i = 0; i < tiles * 2; ++i) b[i / 2][i % 2] = random_operands<C.operand>(4096 + team.rank() * 16 + i);
    Accumulator d[tiles][4] = {};  // of [8][16, 8]
    for (uint32_t step = 0; step < p.steps; ++step) {
#pragma unroll
      for (int t = 0; t < tiles; ++t) {
        if constexpr (sizeof(T) == 1) ptx::mma_m16n8k32(d[t], a, b[t]);
        else ptx::mma_m16n8k16(d[t], a, b[t], T{});
      }
    }
    uint32_t seen = 0;
#pragma unroll
    for (int i = 0; i < tiles * 4; ++i) seen ^= bits_of(d[i / 4][i % 4]);
    if (seen == p.never) *static_cast<uint32_t*>(p.sink) = seen;
#endif
  }
};

struct FmaConfig {
  int chains;  ///< independent ones a thread
};

/// Each thread: 8 rounds of d = d * x + y on its chains, p.steps times.
template <FmaConfig C>
struct FmaTask {
  using Params = ProductParams;
  static constexpr int rounds = 8;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const float x = 0.5f + 1e-6f * static_cast<float>(item), y = 1e-3f * static_cast<float>(team.rank());
    float d[C.chains];
#pragma unroll
    for (int c = 0; c < C.chains; ++c) d[c] = static_cast<float>(c);
    for (uint32_t step = 0; step < p.steps; ++step) {
#pragma unroll
      for (int i = 0; i < rounds * C.chains; ++i) d[i % C.chains] = __fmaf_rn(d[i % C.chains], x, y);
    }
    uint32_t seen = 0;
#pragma unroll
    for (int c = 0; c < C.chains; ++c) seen ^= bits_of(d[c]);
    if (seen == p.never) *static_cast<uint32_t*>(p.sink) = seen;
  }
};

}  // namespace cermet::limits
