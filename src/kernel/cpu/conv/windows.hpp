// The windows of a convolution over nhwc tensors, cut into regions that a thread takes.
#pragma once

#include "kernel/cpu/conv/prologue.hpp"
#include "kernel/cpu/conv/taps.hpp"
#include "kernel/cpu/convert.hpp"
#include "op/conv.hpp"

namespace cermet::cpu {

/// Output places [row, row + rows) x [column, column + columns) of one sample and depth.
struct WindowRegion {
  std::int64_t sample, depth, row, rows, column, columns;
};

/// Where the windows of a region are read, and in which runs.
struct WindowSource {
  const float* first;                  ///< first element of the region's first window
  std::int64_t row_step, column_step;  ///< elements from a window to the one below and to the next
};

/// All windows of a launch. They are read in x, or in a copy of a region with its padding as float32, which a prologue
/// may compute.
class Windows {
 public:
  /// Elements of float32 that a copy of a region takes at most, for any size of x.
  static std::int64_t copy_floats(const ConvGeometry& geometry, std::int64_t channels, int block_columns);
  /// Entries that the list of runs has at most.
  static std::int64_t most_runs(const ConvGeometry& geometry, std::int64_t group_channels);

  Windows(const ConvGeometry& geometry, const TensorView& x, const TensorView& y, int block_columns, int threads,
          std::int64_t panels, const ConvPrologueRun* prologue = nullptr);

  /// Whether regions are copied before they are read.
  bool copies() const { return copies_; }
  /// Of a region at most, whose copy then fits into copy_floats().
  std::int64_t rows_at_once() const { return part_rows_; }
  std::int64_t columns_at_once() const { return part_columns_; }
  std::int64_t region_count() const { return samples_ * depths_ * row_parts_ * column_parts_; }
  WindowRegion region(std::int64_t index) const;
  /// Index among the rows of y.
  std::int64_t row_of(const WindowRegion& region, std::int64_t row, std::int64_t column) const {
    return ((region.sample * depths_ + region.depth) * rows_ + region.row + row) * columns_ + region.column + column;
  }
  /// Where a region's windows are: in x, or in `memory`, which holds its copy.
  WindowSource source(const WindowRegion& region, float* memory) const;
  /// Copies a region, where copies() says so.
  void copy(const WindowRegion& region, float* memory) const;
  /// Writes the list of runs over one group's channels and returns their number. Each is at most run_limit long.
  std::int64_t list_runs(TapRun* runs) const;

  static constexpr std::int64_t run_limit = 1024;

 private:
  void merge_axes();
  void plan_reads();
  void cut(int block_columns, int threads, std::int64_t panels);
  void copy_row(const WindowRegion& region, std::int64_t d, std::int64_t h, float* to) const;
  void gather(const float* from, std::int64_t count, float* to) const;
  /// Entries along an axis that a copy of so many windows takes.
  std::int64_t copied(std::size_t axis, std::int64_t windows) const {
    return (windows - 1) * copy_stride_[axis] + g_.extent(axis);
  }
  std::int64_t copied_floats(std::int64_t rows, std::int64_t columns) const {
    return g_.kernel[0] * copied(1, rows) * copied(2, columns) * pixel_;
  }

  ConvGeometry g_;
  const TensorView& x_;
  ConvTensor in_;
  RunConverter convert_;
  const ConvPrologueRun* prologue_;
  bool merged_ = false;
  std::int64_t samples_, depths_, rows_, columns_;  ///< of y
  std::int64_t part_rows_ = 1, part_columns_ = 1, row_parts_ = 0, column_parts_ = 0;
  bool copies_ = false;
  ConvGeometry::Axes copy_stride_{},
      source_step_{};  ///< of windows in a copy; of what neighbouring entries of a copy were in x
  std::int64_t pixel_ = 0, line_ = 0, plane_ = 0;  ///< elements between entries of a copy
  ConvGeometry::Axes tap_{};                       ///< elements between taps
};

}  // namespace cermet::cpu
