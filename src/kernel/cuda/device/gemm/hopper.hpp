// Parameters and shared-memory plan of the Hopper GEMM: host and device.
#pragma once

#include "kernel/cuda/device/tensor_map.hpp"
#include "kernel/cuda/device/tile/epilogue.hpp"

namespace cermet::gemm {

/// Rows of groups that a bulk copy takes where most groups have few.
inline constexpr int hopper_few_rows = 16;
/// Tiles of m that share a sweep over n, so that a wave's operands stay in the L2.
inline constexpr int hopper_raster = 16;

/// y[m, n] = epilogue(sum over k of a[m, k] * b[n, k]). Steps count elements; pointers that the configuration does not
/// use may be null.
struct HopperParams {
  TensorMapBytes a;  ///< tiles of [block_m, 128 bytes], or of hopper_few_rows, 128-byte swizzle; all groups' rows (all
                     ///< parts' rows) one below the other
  TensorMapBytes b, b_up;  ///< tiles of [block_n, 128 bytes]; all groups' rows one below the other
  TensorMapBytes y_map;    ///< pieces of [16, 128 bytes], 128-byte swizzle; only where results go out with bulk copies
  void* y;                 ///< rows start at multiples of 16 bytes and end at one
  const float* row_scale;  ///< of row r and block kb of the reduction: [r * row_scale_step + kb * row_scale_block]
  const float* column_scale;   ///< of 128 columns and blocks
  const void* offsets;         ///< [groups + 1], where groups are found by offsets
  const int32_t* column_sums;  ///< [n]: sums over the reduction of b's columns, where the epilogue reads them
  void* also;                  ///< the second result, where the epilogue gives two; rows as those of y
  int64_t y_stride, y_group, also_stride, also_group;
  int64_t column_scale_group;
  int32_t m;                 ///< rows of all groups found by offsets, of one otherwise
  int32_t groups;            ///< 1 where there are none
  int32_t a_group, b_group;  ///< rows of the maps from group to group
  int32_t a_part;            ///< rows of the map from part to part of a split operand
  int32_t row_scale_step, row_scale_block, column_scale_step;
  int32_t items;
  int32_t by_number;  ///< whether tiles of groups with few rows come by the group's number, which pays where hardly any
                      ///< group has none
  int32_t window_rows, window_columns;  ///< of a sample, where a is windows
  const void*
      gate;  ///< of row r and column k of a, where they are gated: [r / gate_rows * gate_sample + k]; whole 16 bytes
  int64_t gate_sample;
  int32_t gate_rows;
  /// Values for each column are 16-byte aligned for every group and side by side; rows of those for each place are
  /// 16-byte aligned.
  epilogue::Operand extra[epilogue::most_extras];
};

/// Shared memory of a configuration. A ring of stages, each 128 bytes of k of every row; rows on their way out; what
/// the epilogue reads for columns.
struct HopperShape {
  int block_m, block_n;
  int a_parts, b_parts;  ///< tiles of each operand in a stage
  int out_bytes;
  int vector_bytes;    ///< of what the epilogue reads for a column
  bool ungrouped;      ///< tiles end where the result does, so that bulk copies leave out what lies past it
  int also_bytes = 0;  ///< of a second result

  static constexpr int tile_row = 128;        ///< bytes of a tile's row
  static constexpr int most_row_bytes = 512;  ///< of a result on its way out
  static constexpr int shared_limit = 227 * 1024;

  CERMET_HOST_DEVICE constexpr int consumers() const { return block_m / 64; }
  CERMET_HOST_DEVICE constexpr int threads() const { return 128 * (consumers() + 1); }
  CERMET_HOST_DEVICE constexpr int stage_bytes() const { return (a_parts * block_m + b_parts * block_n) * tile_row; }
  CERMET_HOST_DEVICE constexpr bool bulk_results() const { return ungrouped && block_n * out_bytes % tile_row == 0; }
  /// Columns of a result of `bytes` that go out at a time with ordinary stores, whose rows take at most `most` bytes.
  CERMET_HOST_DEVICE constexpr int chunk_of(int bytes, int most) const {
    int parts = 1;
    while (block_n / parts * bytes > most || block_n % parts != 0 || (32 * 16) % (block_n / parts * bytes) != 0)
      ++parts;
    return block_n / parts;
  }
  CERMET_HOST_DEVICE constexpr int chunk() const { return chunk_of(out_bytes, most_row_bytes); }
  /// Bytes between rows on their way out; padded against bank conflicts where they are not swizzled.
  CERMET_HOST_DEVICE constexpr int pitch() const {
    if (bulk_results()) return block_n * out_bytes < most_row_bytes ? block_n * out_bytes : most_row_bytes;
    return chunk() * out_bytes + 16;
  }
  /// The same of a second result, which goes out when the first has.
  CERMET_HOST_DEVICE constexpr int also_chunk() const { return chunk_of(also_bytes, 128); }
  CERMET_HOST_DEVICE constexpr int also_pitch() const { return also_bytes == 0 ? 0 : also_chunk() * also_bytes + 16; }
  /// Bytes of shared memory for each row on its way out: whole swizzled lines where there are such.
  CERMET_HOST_DEVICE constexpr int staging_pitch() const {
    if (also_pitch() <= pitch()) return pitch();
    return (also_pitch() + tile_row - 1) / tile_row * tile_row;
  }
  CERMET_HOST_DEVICE constexpr int staging_bytes() const { return block_m * staging_pitch(); }
  CERMET_HOST_DEVICE constexpr int column_bytes() const { return block_n * vector_bytes; }  ///< for one warpgroup
  CERMET_HOST_DEVICE constexpr int fixed_bytes() const { return staging_bytes() + consumers() * column_bytes(); }
  CERMET_HOST_DEVICE constexpr int shared_bytes(int stages) const {
    return stages * (stage_bytes() + 16) + fixed_bytes();
  }
  CERMET_HOST_DEVICE constexpr int most_stages() const { return (shared_limit - fixed_bytes()) / (stage_bytes() + 16); }
};

}  // namespace cermet::gemm
