// Rows of a in the Hopper GEMM (hopper.cuh) that are not plain rows of a matrix: the windows of a convolution, which
// the producer gathers with im2col tensor maps, and rows that a gate multiplies, column by column, which a consumer
// warpgroup scales where they wait in shared memory.
#pragma once

#include "kernel/cuda/device/gemm/hopper.hpp"
#include "kernel/cuda/device/gemm/hopper_epilogue.cuh"

#if CERMET_ARCH >= 900
namespace cermet::gemm {

/// The windows that a tile begins with: reduction steps are loaded tap by tap.
template <HopperConfig C, int BlockK>
struct WindowRows {
  static constexpr HopperWindows windows = C.windows;
  static constexpr int tap_tiles = max_of(1, windows.channels / BlockK);
  int w, h, sample;

  CERMET_DEVICE WindowRows(const HopperParams& p, int row) {
    const int line = row / p.window_columns;
    w = row % p.window_columns * windows.stride_w - windows.before_w;
    h = line % p.window_rows * windows.stride_h - windows.before_h;
    sample = line / p.window_rows;
  }
  /// a: (BLK_M, BLK_K)
  CERMET_DEVICE void load(const HopperParams& p, int kt, char* a, uint64_t* full) const {
    const int tap = kt / tap_tiles;
    ptx::tma_load_windows(a, &p.a, kt % tap_tiles * BlockK, w, h, sample, tap % windows.kernel_w * windows.dilation_w,
                          tap / windows.kernel_w * windows.dilation_h, full);
  }
};

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

/// The gates of a warpgroup's 64 rows; a thread has 16 bytes of every sixteenth. T: 16-bit elements; K: columns of a.
template <class T, int K>
struct GatedRows {
  using Words = Vector<uint32_t, 4>;
  static constexpr int units = HopperShape::row_bytes / 16, step = 128 / units, rows = 64 / step,
                       width = per_16_bytes<T>;

  int row, unit;  // of the first
  const T* from[rows];
  Words gates[rows];

  /// `first`: row of a of the warpgroup's first; `rank` in the warpgroup.
  CERMET_DEVICE GatedRows(const HopperParams& p, int first, int rank) : row(rank / units), unit(rank % units) {
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

  /// a: (64, BLK_K). By the whole warpgroup, which waits for itself before it multiplies.
  CERMET_DEVICE void scale(char* a) const {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      Words* const at = reinterpret_cast<Words*>(a + swizzled(row + i * step, unit));
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
