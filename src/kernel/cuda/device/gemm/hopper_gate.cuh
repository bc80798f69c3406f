// Rows of a that a gate multiplies, column by column, before the product: a consumer warpgroup scales its 64 rows of a
// stage where they wait in shared memory.
#pragma once

#include "kernel/cuda/device/gemm/epilogue.cuh"
#include "kernel/cuda/device/gemm/hopper.hpp"

#if CERMET_ARCH >= 900
namespace cermet::gemm {

/// Two products, each rounded once.
template <class T>
CERMET_DEVICE uint32_t multiply_pairs(uint32_t a, uint32_t b);
template <>
CERMET_DEVICE uint32_t multiply_pairs<f16>(uint32_t a, uint32_t b) {
  uint32_t y;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}
template <>
CERMET_DEVICE uint32_t multiply_pairs<bf16>(uint32_t a, uint32_t b) {
  uint32_t y;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}

/// A thread has 16 bytes of every sixteenth row. T: 16-bit elements; K: columns of a.
template <class T, int K>
struct HopperGate {
  using Words = Vector<uint32_t, 4>;
  static constexpr int units = HopperShape::tile_row / 16, step = 128 / units, rows = 64 / step,
                       width = per_16_bytes<T>;

  int row, unit;  // of the first
  const T* from[rows];
  Words gates[rows];

  /// `first`: row of a of the warpgroup's first; `rank` in the warpgroup.
  CERMET_DEVICE HopperGate(const HopperParams& p, int first, int rank) : row(rank / units), unit(rank % units) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const int sample = min_of(first + row + i * step, p.m - 1) / p.gate_rows;
      from[i] = static_cast<const T*>(p.gate) + sample * p.gate_sample + unit * width;
    }
  }

  /// What stage `kt` of a tile is multiplied by; where a has no columns, its zeros stay.
  CERMET_DEVICE void load(int kt) {
    const int column = kt * units * width;
#pragma unroll
    for (int i = 0; i < rows; ++i)
      gates[i] = column + unit * width < K ? *reinterpret_cast<const Words*>(from[i] + column) : Words{};
  }

  /// By the whole warpgroup, which waits for itself before it multiplies.
  CERMET_DEVICE void scale(char* tile) const {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      Words* const at = reinterpret_cast<Words*>(tile + swizzled(row + i * step, unit));
      Words v = *at;
#pragma unroll
      for (int w = 0; w < 4; ++w) v[w] = multiply_pairs<T>(v[w], gates[i][w]);
      *at = v;
    }
    ptx::fence_async_shared();
  }
};

}  // namespace cermet::gemm
#endif
