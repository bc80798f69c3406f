#include "kernel/cuda/item_axes.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "kernel/cuda/narrow.hpp"

namespace cermet::cuda {
namespace {

/// Sums of the steps to the last index of each axis, in bytes.
template <class Axes>
std::int64_t span_of(const Axes& axes, std::int64_t run) {
  std::int64_t bytes = run;
  for (const auto& axis : axes) bytes += (axis.extent - 1) * axis.pitch;
  return bytes;
}

}  // namespace

ItemGrid item_grid(std::int64_t outer, std::int64_t middle, std::int64_t rows, std::int64_t columns,
                   std::int64_t sweep) {
  ItemGrid grid;
  const std::int64_t extents[] = {outer, middle, rows, columns};
  for (std::size_t d = 0; d < grid.extent.size(); ++d)
    grid.extent[d] = static_cast<std::uint32_t>(narrow(extents[d], "launch", "tiles"));
  grid.sweep = static_cast<std::uint32_t>(std::clamp<std::int64_t>(sweep, 1, std::max<std::int64_t>(1, rows)));
  return grid;
}

ItemAxes& ItemAxes::axis(std::int64_t extent, std::int64_t stride, const Along& along) {
  CERMET_ASSERT(count_ < most);
  Axis own{extent, stride * element_bytes_, along};
  if (own.pitch < 0) {
    data_ = static_cast<const std::byte*>(data_) + (extent - 1) * own.pitch;
    own.pitch = -own.pitch;
    backwards_ = backwards_ || !own.is_whole();
  }
  axes_[count_++] = own;
  return *this;
}

ItemAxes& ItemAxes::walk(std::int32_t rank, const std::int64_t* sizes, const std::int64_t* strides,
                         std::int64_t positions) {
  std::int64_t count = 1;
  bool joined = true;
  for (std::int32_t a = rank - 1; a >= 0; --a) {
    joined = joined && (a + 1 == rank || sizes[a] == 1 || strides[a] == count * strides[rank - 1]);
    count *= sizes[a];
  }
  if (joined) return axis(count, strides[rank - 1], tiles_along(grid_columns, positions));
  const std::int64_t inner = sizes[0] > 0 ? count / sizes[0] : 1;
  axis(sizes[0], strides[0], {grid_columns, positions, positions + inner - 1, 0, inner});
  for (std::int32_t a = 1; a < rank; ++a) axis(sizes[a], strides[a]);
  return *this;
}

ByteRange ItemAxes::range() const {
  std::array<Axis, most> kept{};
  std::size_t count = 0;
  bool has_box = !backwards_;
  for (const Axis& axis : std::span(axes_).first(count_)) {
    if (axis.extent == 0) return {};
    // What every item reads whole needs no axis where it is one index, repeated.
    if (axis.is_whole() ? axis.extent == 1 || axis.pitch == 0 : axis.extent > 1 && axis.pitch == 0) continue;
    kept[count++] = axis;
  }
  const std::span<Axis> axes = std::span(kept).first(count);
  // The step of a single index says nothing; it goes around all others.
  for (Axis& axis : axes)
    if (axis.extent == 1) axis.pitch = std::int64_t{1} << 62;
  for (auto axis = axes.begin(); axis != axes.end(); ++axis)  // a stable sort that allocates nothing
    std::rotate(std::ranges::upper_bound(axes.begin(), axis, axis->pitch, std::ranges::greater(), &Axis::pitch), axis,
                axis + 1);
  std::int64_t run = element_bytes_;
  while (count > 0 && kept[count - 1].is_whole()) {
    run += (kept[count - 1].extent - 1) * kept[count - 1].pitch;
    --count;
  }
  ByteRange range{static_cast<const std::byte*>(data_), span_of(std::span(kept).first(count), run)};
  ItemBox box;
  box.grid = grid_;
  box.run = run;
  for (std::size_t a = 0; a < count && has_box; ++a) {
    Axis axis = kept[a];
    const std::int64_t inner = span_of(std::span(kept).subspan(a + 1, count - a - 1), run);
    if (axis.extent == 1) axis.pitch = inner;
    // Neighbours that every item has whole are one axis.
    while (a + 1 < count && axis.is_whole() && kept[a + 1].is_whole() &&
           axis.pitch == kept[a + 1].extent * kept[a + 1].pitch) {
      ++a;
      axis = {axis.extent * kept[a].extent, kept[a].pitch, {}};
    }
    has_box = axis.pitch >= span_of(std::span(kept).subspan(a + 1, count - a - 1), run) &&
              box.append({axis.pitch, axis.extent, axis.along.step, axis.along.width, axis.along.offset,
                          narrow(axis.along.per, "launch", "items of an axis"), axis.along.coordinate});
  }
  const bool divides =
      std::ranges::any_of(std::span(kept).first(count), [](const Axis& axis) { return !axis.is_whole(); });
  if (has_box && divides) range.box = box;
  return range;
}

ByteRange range_of_items(const TensorView& view, const ItemGrid& grid, std::initializer_list<Along> along) {
  if (!view.present || view.elements() == 0) return {};
  ItemAxes axes(view, grid);
  for (int a = 0; a < view.shape.rank(); ++a)
    axes.axis(view.shape[a], view.strides[a], static_cast<std::size_t>(a) < along.size() ? along.begin()[a] : Along{});
  return axes.range();
}

ByteRange positions_of_items(const TensorView& view, std::int64_t positions, std::int64_t items) {
  if (!view.present || view.elements() == 0) return {};
  if (!view.is_dense()) return byte_range(view);
  return ItemAxes(view, item_grid(1, 1, 1, items))
      .axis(view.elements(), 1, tiles_along(grid_columns, positions))
      .range();
}

}  // namespace cermet::cuda
