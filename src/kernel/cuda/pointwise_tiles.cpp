#include "base/checked.hpp"
#include "kernel/cuda/pointwise.hpp"

namespace cermet::cuda {
namespace {

/// The view with leading dimensions of size 1, so that it has `rank`.
TensorView with_rank(const TensorView& view, int rank) {
  Shape shape, strides;
  for (int axis = view.shape.rank(); axis < rank; ++axis) {
    shape.push_back(1);
    strides.push_back(0);
  }
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    shape.push_back(view.shape[axis]);
    strides.push_back(view.strides[axis]);
  }
  return {view.data, view.dtype, shape, strides};
}

/// Whether the last two dimensions of an operand are one run of elements, or one element, where the result is a run.
bool merges(const TensorView& view, const TensorView& result) {
  const int last = result.shape.rank() - 1;
  const std::int64_t outer = view.shape[last - 1], inner = view.shape[last];
  if (outer == 1 && inner == 1) return true;
  if (outer != result.shape[last - 1] || inner != result.shape[last]) return false;
  return outer == 1 || view.strides[last - 1] == inner;
}

void merge_last_two(TensorView& view) {
  Shape shape, strides;
  const int last = view.shape.rank() - 1;
  for (int axis = 0; axis < last; ++axis) {
    shape.push_back(axis == last - 1 ? view.shape[axis] * view.shape[last] : view.shape[axis]);
    strides.push_back(axis == last - 1 ? 1 : view.strides[axis]);
  }
  view.shape = shape;
  view.strides = strides;
}

}  // namespace

TileWalk::TileWalk(std::span<const TensorView* const> operands, int width, int threads) {
  CERMET_ASSERT(operands.size() <= most_operands);
  const std::size_t count = operands.size();
  std::array<TensorView, most_operands> views;
  const int rank = std::max(1, operands.back()->shape.rank());
  for (std::size_t i = 0; i < count; ++i) views[i] = with_rank(*operands[i], rank);
  TensorView& result = views[count - 1];
  const auto all_merge = [&] {
    for (std::size_t i = 0; i < count; ++i)
      if (!merges(views[i], result)) return false;
    return true;
  };
  while (result.shape.rank() > 1 && all_merge())
    for (std::size_t i = 0; i < count; ++i) merge_last_two(views[i]);
  // Rows are walked by the result's dimensions, so it comes first there.
  std::array<RowView, most_operands> rows;
  for (std::size_t i = 0; i < count; ++i) {
    rows[i] = {&views[i], 1};
    along_[i] = views[i].shape.back() == result.shape.back() ? 1 : 0;
  }
  walk_.emplace(std::span(rows.data(), count), count - 1);
  bool aligned = true;
  for (std::size_t i = 0; i < count; ++i) aligned = aligned && (along_[i] == 0 || walk_->aligned(i, width));
  shape_ = tile_shape(*walk_, result.shape.back(), width, threads, aligned);
  items_ = tile_items(shape_, threads);
}

TileShape tile_shape(const RowWalk& walk, std::int64_t length, int width, int threads, bool aligned) {
  TileShape shape{
      .dims = walk.dims(), .rows = static_cast<std::uint32_t>(walk.rows()), .tiles_per_row = 0, .lanes_shift = 0, .aligned = aligned, .length = length};
  const std::int64_t vectors = div_up(length, width);
  while ((std::int64_t{1} << shape.lanes_shift) < std::min<std::int64_t>(vectors, threads)) ++shape.lanes_shift;
  const std::int64_t tiles = div_up(vectors, std::int64_t{1} << shape.lanes_shift);
  require(walk.rows() < std::int64_t{1} << 32 && tiles < std::int64_t{1} << 32,
          "elementwise operator: expected fewer than 2^32 rows and tiles, found {} and {}", walk.rows(), tiles);
  shape.tiles_per_row = static_cast<std::uint32_t>(tiles);
  return shape;
}

std::int64_t tile_items(const TileShape& shape, int threads) {
  return div_up(static_cast<std::int64_t>(shape.rows), std::int64_t{threads >> shape.lanes_shift}) * shape.tiles_per_row;
}

}  // namespace cermet::cuda
