// Configuration of the Hopper GEMM, which tile of the result an item is, and the windows of a convolution that it
// begins with.
#pragma once

#include "kernel/cuda/device/gemm/groups.cuh"
#include "kernel/cuda/device/gemm/hopper.hpp"
#include "kernel/cuda/device/ptx/tma.cuh"

namespace cermet::gemm {

/// How the rows of a group are found.
enum class Grouping : uint8_t { none, batches, offsets };

/// The windows of a convolution, where they are the rows of a: reduction steps are taps, and channels within a tap.
struct HopperWindows {
  int kernel_h = 0, kernel_w = 0;  ///< 0: there are none
  int stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, before_h = 0, before_w = 0;
  int channels = 0;  ///< of a tap; whole stages
};

struct HopperConfig {
  DType a, b;
  int n, k;
  int block_m, block_n, stages;
  int a_parts = 1;  ///< a is the sum of this many matrices, stacked
  bool dual = false;
  int promote = 0;       ///< stages after which sums move to other registers, where the tensor cores sum with less than
                         ///< float32; 0: never
  bool blocked = false;  ///< scales of 128 reduction steps: promotes after each
  bool row_scale = false, column_scale = false;  ///< of blocks
  Grouping grouping = Grouping::none;
  DType offsets = DType::i32;
  bool few_rows = false;  ///< most groups have fewer rows than a tile: only rows that exist are copied, and tiles may
                          ///< come by number (HopperParams)
  bool rest = false;      ///< where that is so: rows behind the last group's get what follows the product, of zeros
  int raster = hopper_raster;
  bool early =
      false;  ///< a block's first tiles of b, which no launch writes, are asked for before earlier launches have ended
  HopperWindows windows = {};
  bool gated = false;  ///< a gate multiplies the rows of a
};

/// A tile of the result. A whole warp constructs it.
template <HopperConfig C>
struct TileCoord {
  static constexpr int tiles_n = static_cast<int>(div_up(C.n, C.block_n));
  int row, rows_end;  // of a and y, within the group where groups are batches
  int n, group = 0;
  bool is_rest = false;  // no weight multiplies its rows

  __device__ TileCoord(const HopperParams& p, uint32_t item) {
    const uint32_t tiles_m = static_cast<uint32_t>(p.m + C.block_m - 1) / C.block_m;
    if constexpr (C.grouping == Grouping::batches) {
      group = static_cast<int>(item / (tiles_m * tiles_n));
      item %= tiles_m * tiles_n;
    }
    if constexpr (C.grouping == Grouping::offsets) {
      n = static_cast<int>(item % tiles_n) * C.block_n;
      const auto* const offsets = static_cast<const Element<C.offsets>*>(p.offsets);
      const int tile = static_cast<int>(item / tiles_n);
      const GroupTile found = C.few_rows
                                  ? find_group_of_few<C.rest>(offsets, p.groups, p.m, C.block_m, tile, p.by_number != 0)
                                  : find_group(offsets, p.groups, p.m, C.block_m, tile);
      group = found.group, row = found.row, rows_end = found.rows_end;
      if (C.rest && group < 0 && row < rows_end)
        group = 0,
        is_rest = true;  // any group's values for columns do: they multiply zeros, as finite scales of rows do
    } else {
      const uint32_t sweep = item / (C.raster * tiles_n), first = sweep * C.raster;
      const uint32_t rest = item - sweep * (C.raster * tiles_n), size = min_of<uint32_t>(C.raster, tiles_m - first);
      n = static_cast<int>(rest / size) * C.block_n;
      row = static_cast<int>(first + rest % size) * C.block_m, rows_end = p.m;
    }
  }
  __device__ bool empty() const { return C.grouping == Grouping::offsets && group < 0; }
};

#if CERMET_ARCH >= 900
/// The windows that a tile begins with: reduction steps are loaded tap by tap.
template <HopperConfig C, int StageElements>
struct WindowSource {
  static constexpr HopperWindows windows = C.windows;
  static constexpr int tap_tiles = max_of(1, windows.channels / StageElements);
  int w, h, sample;

  CERMET_DEVICE WindowSource(const HopperParams& p, int row) {
    const int line = row / p.window_columns;
    w = row % p.window_columns * windows.stride_w - windows.before_w;
    h = line % p.window_rows * windows.stride_h - windows.before_h;
    sample = line / p.window_rows;
  }
  CERMET_DEVICE void load(const HopperParams& p, int kt, char* tile, uint64_t* full) const {
    const int tap = kt / tap_tiles;
    ptx::tma_load_windows(tile, &p.a, kt % tap_tiles * StageElements, w, h, sample,
                          tap % windows.kernel_w * windows.dilation_w, tap / windows.kernel_w * windows.dilation_h,
                          full);
  }
};
#endif

}  // namespace cermet::gemm
