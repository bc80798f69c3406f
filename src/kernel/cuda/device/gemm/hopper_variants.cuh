// Variants of the Hopper GEMM (hopper.cuh) with loads or a mainloop of their own. K: the kernel.
//
//   WindowTile         a is the windows of a convolution, which the producer gathers with im2col tensor maps
//   GatedMainloop      a gate multiplies rows of a, column by column: a consumer warpgroup scales them where they wait
//                      in shared memory
//   PromotedMainloop   fp8, which the tensor cores add with 14 significant bits: sums move to float32 registers every
//                      few stages, scaled where scales cover blocks of k
#pragma once

#include "kernel/cuda/device/gemm/hopper.hpp"
#include "kernel/cuda/device/gemm/hopper_epilogue.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"

#if CERMET_ARCH >= 900
namespace cermet::gemm {

/// The windows that a tile begins with: reduction steps are loaded tap by tap.
template <class K>
struct WindowTile {
  static constexpr HopperWindows windows = K::config.windows;
  static constexpr int tap_tiles = max_of(1, windows.channels / K::block_k);
  const HopperParams& p;
  const typename K::Shared& shared;
  int w, h, sample;

  CERMET_DEVICE WindowTile(const HopperParams& p, const typename K::Shared& shared, const typename K::Tile& tile)
      : p(p), shared(shared) {
    const int line = tile.row / p.window_columns;
    w = tile.row % p.window_columns * windows.stride_w - windows.before_w;
    h = line % p.window_rows * windows.stride_h - windows.before_h;
    sample = line / p.window_rows;
  }
  CERMET_DEVICE uint32_t stage_bytes() const { return K::a_bytes; }
  CERMET_DEVICE void load(int kt, int stage) const {
    const int tap = kt / tap_tiles;
    ptx::tma_load_windows(shared.a(stage, 0), &p.a, kt % tap_tiles * K::block_k, w, h, sample,
                          tap % windows.kernel_w * windows.dilation_w, tap / windows.kernel_w * windows.dilation_h,
                          shared.full + stage);
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

template <class K>
struct GatedMainloop {
  using Total = typename K::Sum;
  template <class Team>
  static CERMET_DEVICE void multiply(const HopperParams& p, const typename K::Shared& shared, Team team, int warpgroup,
                                     const typename K::Tile& tile, int, typename K::Slot slot,
                                     Total (&total)[K::b_parts][K::acc_size]) {
    GatedRows<typename K::A, K::config.k> gate(p, tile.row + warpgroup * 64, static_cast<int>(team.rank()) % 128);
    gate.load(0);
    K::multiply(shared, warpgroup, slot, total, [&](int kt, int stage) {
      gate.scale(shared.a(stage, 0) + warpgroup * 64 * K::row_bytes);
      if (kt + 1 < K::k_tiles) gate.load(kt + 1);
      team.sync_part(warpgroup, 128);
    });
  }
};

/// Sums of a few stages as they are.
template <class K>
struct NoScales {
  CERMET_DEVICE NoScales(const HopperParams&, const typename K::Tile&, int) {}
  CERMET_DEVICE void load(const HopperParams&, int) {}
  CERMET_DEVICE float scaled(int, int, float term) const { return term; }
};

/// Scales of blocks of 128 reduction steps, which are those of a stage.
template <class K>
struct BlockScales {
  const float *row_scale, *column_scale;
  int row, rows_end;                 ///< the thread's first, and the end of the group's
  float left[2], right[K::b_parts];  ///< of the thread's rows, of the tile's columns

  /// first: the warp's first row.
  CERMET_DEVICE BlockScales(const HopperParams& p, const typename K::Tile& tile, int first)
      : row(first + static_cast<int>(lane_index()) / 4), rows_end(tile.rows_end) {
    column_scale = p.column_scale + tile.group * p.column_scale_group + tile.n / 128 * p.column_scale_step;
    row_scale = p.row_scale + static_cast<int64_t>(row) * p.row_scale_step;
  }
  CERMET_DEVICE void load(const HopperParams& p, int kt) {
    left[0] = left[1] = 1.0f;
#pragma unroll
    for (int part = 0; part < K::b_parts; ++part) right[part] = 1.0f;
    if constexpr (K::config.column_scale)
#pragma unroll
      for (int part = 0; part < K::b_parts; ++part)
        right[part] = column_scale[part * (K::config.n / 128) * p.column_scale_step + kt * p.column_scale_block];
    if constexpr (K::config.row_scale)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        if (row + 8 * h < rows_end) left[h] = row_scale[8 * h * p.row_scale_step + kt * p.row_scale_block];
  }
  /// Of sum `i` of a part of b.
  CERMET_DEVICE float scaled(int part, int i, float term) const {
    return __fmul_rn(left[i / 2 % 2], __fmul_rn(right[part], term));
  }
};

template <class K>
struct PromotedMainloop {
  using Total = float;  // also of int8
  using Scales = Either<K::config.blocked, BlockScales<K>, NoScales<K>>;
  static constexpr int promote = K::config.blocked ? 1 : K::config.promote, k_tiles = K::k_tiles;
  static constexpr int b_parts = K::b_parts, acc_size = K::acc_size;

  /// row: the warp's first.
  template <class Team>
  static CERMET_DEVICE void multiply(const HopperParams& p, const typename K::Shared& shared, Team, int warpgroup,
                                     const typename K::Tile& tile, int row, typename K::Slot slot,
                                     Total (&total)[b_parts][acc_size]) {
    typename K::Sum acc[b_parts][acc_size];
    Scales scales(p, tile, row);
#pragma unroll
    for (int i = 0; i < b_parts * acc_size; ++i)
      total[i / acc_size][i % acc_size] = -0.0f;  // added to anything gives that
#pragma unroll 1
    for (int kt = 0; kt < k_tiles; kt += promote) {
      scales.load(p, kt);
      int stages[promote];
#pragma unroll
      for (int i = 0; i < promote; ++i) {
        if (k_tiles % promote != 0 && kt + i >= k_tiles) break;
        stages[i] = slot.stage;
        ptx::mbarrier_wait(shared.full + slot.stage, slot.phase);
        K::multiply_stage(shared, warpgroup, slot.stage, i > 0, acc);
        slot.advance();
      }
      ptx::wgmma_wait<0>();
#pragma unroll
      for (int i = 0; i < promote; ++i)
        if (k_tiles % promote == 0 || kt + i < k_tiles) K::release(shared, stages[i]);
#pragma unroll
      for (int i = 0; i < b_parts * acc_size; ++i) {
        const int part = i / acc_size, at = i % acc_size;
        const float term = scales.scaled(part, i, static_cast<float>(acc[part][at]));
        total[part][at] = __fadd_rn(total[part][at], term);
      }
    }
  }
};

}  // namespace cermet::gemm
#endif
