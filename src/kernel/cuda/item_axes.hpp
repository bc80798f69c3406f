// How the items of a launch divide an operand, axis by axis: what kernels whose tiles have more than one dimension
// declare (TaskQueue::declare).
#pragma once

#include <array>
#include <initializer_list>

#include "base/tensor.hpp"
#include "device/plan.hpp"
#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::cuda {

/// Dimensions of an ItemGrid.
enum GridDimension : std::int32_t { grid_outer, grid_middle, grid_rows, grid_columns };

/// A grid of [outer, middle, rows, columns]. Throws where a dimension is more than items are counted in.
ItemGrid item_grid(std::int64_t outer, std::int64_t middle, std::int64_t rows, std::int64_t columns,
                   std::int64_t sweep = 1);

/// What an item has of an axis, see ItemAxis; every index by default.
struct Along {
  std::int32_t coordinate = ItemAxis::all;
  std::int64_t step = 0, width = 0, offset = 0;
  std::int64_t per = 1;
};
/// The next `width` indices for each place of the coordinate.
inline Along tiles_along(GridDimension coordinate, std::int64_t width) { return {coordinate, width, width, 0, 1}; }
/// Equal shares of `extent` indices for `count` places.
inline Along shares_along(GridDimension coordinate, std::int64_t extent, std::int64_t count) {
  return {coordinate, extent, extent, 0, count};
}

/// Collects the axes of an operand, in any order.
class ItemAxes {
 public:
  ItemAxes(const void* data, std::int64_t element_bytes, const ItemGrid& grid)
      : data_(data), element_bytes_(element_bytes), grid_(grid) {}
  ItemAxes(const TensorView& view, const ItemGrid& grid)
      : ItemAxes(view.data, static_cast<std::int64_t>(size_of(view.dtype)), grid) {}

  /// `stride` in elements; 0 repeats, and a negative one walks backwards from where the data begin.
  ItemAxes& axis(std::int64_t extent, std::int64_t stride, const Along& along = {});
  /// The axes of an operand that items walk together, the next `positions` each; elements are words. Where the
  /// operand's axes are not one run, all of a step along the outermost counts as touched.
  template <int N>
  ItemAxes& walk(const Axes<N>& axes, std::size_t operand, std::int64_t positions) {
    return walk(axes.rank, axes.size, axes.stride[operand], positions);
  }
  /// All bytes from the first to the last, with the box of an item where axes lie within each other and few enough are
  /// divided.
  ByteRange range() const;

 private:
  struct Axis {
    std::int64_t extent, pitch;
    Along along;
    bool is_whole() const { return along.coordinate == ItemAxis::all; }
  };
  static constexpr std::size_t most = 16;
  ItemAxes& walk(std::int32_t rank, const std::int64_t* sizes, const std::int64_t* strides, std::int64_t positions);

  const void* data_;
  std::int64_t element_bytes_;
  ItemGrid grid_;
  std::array<Axis, most> axes_{};
  std::size_t count_ = 0;
  bool backwards_ = false;  ///< along an axis that is divided
};

/// What a view covers, with what an item has of its axes; of those behind the last that is given, all. Nothing where
/// the operand is not present.
ByteRange range_of_items(const TensorView& view, const ItemGrid& grid, std::initializer_list<Along> along);

/// The next `positions` of a view's elements, in row-major order, for each item; of a view that is not dense, any.
ByteRange positions_of_items(const TensorView& view, std::int64_t positions, std::int64_t items);

/// The same range as one that is read early: see ByteRange.
inline ByteRange early(ByteRange range, bool is_early = true) {
  range.early = is_early && range.bytes > 0;
  return range;
}

}  // namespace cermet::cuda
