// The Hopper GEMM as host and device see it: its configuration, its parameters and its shared memory.
#pragma once

#include "kernel/cuda/device/tensor_map.hpp"
#include "kernel/cuda/device/tile/epilogue.hpp"

namespace cermet::gemm {

/// Rows of a that a bulk copy takes where most groups have few.
inline constexpr int hopper_few_rows = 16;
/// Tiles of m that share a sweep over n, so that a wave's operands stay in the L2.
inline constexpr int hopper_raster = 16;

/// The windows of a convolution, where they are the rows of a: reduction steps are taps, and channels within a tap.
struct HopperWindows {
  int kernel_h = 0, kernel_w = 0;  ///< 0: there are none
  int stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, before_h = 0, before_w = 0;
  int channels = 0;  ///< of a tap; whole stages

  template <class Visit>
  CERMET_HOST_DEVICE constexpr void fields(Visit&& visit) const {
    visit("kernel_h", kernel_h), visit("kernel_w", kernel_w), visit("stride_h", stride_h), visit("stride_w", stride_w);
    visit("dilation_h", dilation_h), visit("dilation_w", dilation_w), visit("before_h", before_h);
    visit("before_w", before_w), visit("channels", channels);
  }
};

struct HopperConfig {
  DType a, b;
  int n, k;
  int block_m, block_n, stages;
  int a_parts = 1;       ///< a is the sum of this many matrices, stacked
  bool dual = false;     ///< two weights, whose products meet in the epilogue
  int promote = 0;       ///< stages after which sums move to other registers, where the tensor cores sum with less than
                         ///< float32; 0: never
  bool blocked = false;  ///< scales of 128 reduction steps: promotes after each
  bool row_scale = false, column_scale = false;  ///< of blocks
  bool batched = false;                          ///< matrices of a batch, a_group and b_group rows apart
  bool grouped = false;     ///< rows of a are sorted by group, which offsets find; each has its matrix b
  DType offsets = {};       ///< their type, where groups are found by offsets
  bool few_rows = false;    ///< most groups have fewer rows than a tile: only rows that exist are copied, and tiles may
                            ///< come by number (HopperParams)
  bool unweighted = false;  ///< with few rows: tiles of the rows behind the last group, whose products are zero
  int raster = hopper_raster;
  bool preload_b = false;  ///< no launch writes b: a block's first tiles of it are copied before earlier launches end
  bool gated = false;      ///< a gate multiplies the rows of a
  HopperWindows windows = {};

  template <class Visit>
  CERMET_HOST_DEVICE constexpr void fields(Visit&& visit) const {
    visit("a", a), visit("b", b), visit("n", n), visit("k", k);
    visit("block_m", block_m), visit("block_n", block_n), visit("stages", stages);
    visit("a_parts", a_parts), visit("dual", dual), visit("promote", promote), visit("blocked", blocked);
    visit("row_scale", row_scale), visit("column_scale", column_scale), visit("batched", batched),
        visit("grouped", grouped);
    visit("offsets", offsets), visit("few_rows", few_rows), visit("unweighted", unweighted), visit("raster", raster);
    visit("preload_b", preload_b), visit("gated", gated), visit("windows", windows);
  }
};

/// y[m, n] = epilogue(sum over k of a[m, k] * b[n, k]). Steps count elements; pointers that the configuration does not
/// use may be null.
struct HopperParams {
  TensorMapBytes a;  ///< tiles of [block_m, 128 bytes], or of hopper_few_rows, 128-byte swizzle; all groups' rows (all
                     ///< parts' rows) one below the other
  TensorMapBytes b, b_up;  ///< tiles of [block_n, 128 bytes]; all groups' rows one below the other
  TensorMapBytes y_map;    ///< pieces of [16, 128 bytes], 128-byte swizzle; only where results go out with bulk copies
  void* y;                 ///< rows start at multiples of 16 bytes and end at one
  const float* row_scale;  ///< of row r and block kb of the reduction: [r * row_scale_step + kb * row_scale_block]
  const float* column_scale;   ///< of 128 columns c and block kb: [c * column_scale_step + kb * column_scale_block]
  const void* offsets;         ///< [groups + 1], where groups are found by offsets
  const int32_t* column_sums;  ///< [n]: sums over the reduction of b's columns, where the epilogue reads them
  void* second;                ///< the second result, where the epilogue gives two; rows as those of y
  int64_t y_stride, y_group, second_stride, second_group;
  int64_t column_scale_group;
  int32_t m;                 ///< rows of all groups found by offsets, of one otherwise
  int32_t groups;            ///< 1 where there are none
  int32_t a_group, b_group;  ///< rows of the maps from group to group
  int32_t a_part;            ///< rows of the map from part to part of a split operand
  int32_t row_scale_step, row_scale_block, column_scale_step, column_scale_block;
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
  int vector_bytes;      ///< of what the epilogue reads for a column
  bool ungrouped;        ///< tiles end where the result does, so that bulk copies leave out what lies past it
  int second_bytes = 0;  ///< of a second result

  static constexpr int row_bytes = 128;       ///< bytes of a tile's row
  static constexpr int most_row_bytes = 512;  ///< of a result on its way out
  static constexpr int shared_limit = 227 * 1024;

  CERMET_HOST_DEVICE constexpr int consumers() const { return block_m / 64; }
  CERMET_HOST_DEVICE constexpr int threads() const { return 128 * (consumers() + 1); }
  CERMET_HOST_DEVICE constexpr int stage_bytes() const { return (a_parts * block_m + b_parts * block_n) * row_bytes; }
  CERMET_HOST_DEVICE constexpr bool bulk_results() const { return ungrouped && block_n * out_bytes % row_bytes == 0; }
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
  CERMET_HOST_DEVICE constexpr int second_chunk() const { return chunk_of(second_bytes, 128); }
  CERMET_HOST_DEVICE constexpr int second_pitch() const {
    return second_bytes == 0 ? 0 : second_chunk() * second_bytes + 16;
  }
  /// Bytes of shared memory for each row on its way out: whole swizzled lines where there are such.
  CERMET_HOST_DEVICE constexpr int staging_pitch() const {
    if (second_pitch() <= pitch()) return pitch();
    return (second_pitch() + row_bytes - 1) / row_bytes * row_bytes;
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
