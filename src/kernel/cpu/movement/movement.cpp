// Operators that are one strided copy, or one for each piece.
#include <memory>

#include "base/checked.hpp"
#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/movement/copy.hpp"
#include "kernel/cpu/movement/piece_map.hpp"
#include "op/axes.hpp"
#include "op/slice_range.hpp"

namespace cermet::cpu {
namespace {

/// Address of the element at `offset` in a view.
void* at(const TensorView& view, std::int64_t offset) { return view.as<std::byte>() + offset * static_cast<std::int64_t>(size_of(view.dtype)); }

using Permutation = PerAxis<int>;

Permutation permutation_of(const Problem& p) {
  const Ints& given = p.attributes.integers("permutation");
  const int rank = p.input(0).rank();
  Permutation permutation{};
  for (int a = 0; a < rank; ++a) permutation[static_cast<std::size_t>(a)] = given.empty() ? rank - 1 - a : static_cast<int>(given[static_cast<std::size_t>(a)]);
  return permutation;
}

void transpose(const LaunchArgs& args, const Permutation& permutation) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  Shape from = y.shape;
  for (int a = 0; a < from.rank(); ++a) from[a] = x.strides[permutation[static_cast<std::size_t>(a)]];
  strided_copy(y.shape, x.data, from, y.data, y.strides, size_of(x.dtype), *args.pool);
}

void slice(const LaunchArgs& args, const PerAxis<SliceBounds>& bounds) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const PerAxis<SliceRange> ranges = slice_ranges(bounds, x.shape, y.shape);
  if (y.elements() == 0) return;
  Shape from = y.shape;
  std::int64_t first = 0;
  for (int a = 0; a < from.rank(); ++a) {
    const SliceRange& range = ranges[static_cast<std::size_t>(a)];
    from[a] = range.count > 1 ? x.strides[a] * range.step : 0;  // a step beyond the axis is taken once
    first += range.first * x.strides[a];
  }
  strided_copy(y.shape, at(x, first), from, y.data, y.strides, size_of(x.dtype), *args.pool);
}

void concat(const LaunchArgs& args, int axis) {
  const TensorView& y = args.outputs[0];
  std::int64_t offset = 0;
  for (const TensorView& x : args.inputs) {
    strided_copy(x.shape, x.data, x.strides, at(y, offset * y.strides[axis]), y.strides, size_of(y.dtype), *args.pool);
    offset += x.shape[axis];
  }
}

void split(const LaunchArgs& args, int axis) {
  const TensorView& x = args.inputs[0];
  std::int64_t offset = 0;
  for (const TensorView& y : args.outputs) {
    strided_copy(y.shape, at(x, offset * x.strides[axis]), x.strides, y.data, y.strides, size_of(x.dtype), *args.pool);
    offset += y.shape[axis];
  }
}

void expand(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int lead = y.shape.rank() - x.shape.rank();
  Shape from = y.shape;
  for (int a = 0; a < from.rank(); ++a) from[a] = a < lead || x.shape[a - lead] == 1 ? 0 : x.strides[a - lead];
  strided_copy(y.shape, x.data, from, y.data, y.strides, size_of(x.dtype), *args.pool);
}

int axis_of(const Problem& p) { return wrap_axis(p.attributes.integer("axis"), p.input(0).rank()); }

Decline declines_moves(const Region& region) {
  if (region.results.size() != 1 || region.results[0].node != region.anchor) return "what is moved on the way is read elsewhere";
  return PieceMap::declines(region, region.nodes.size(), region.results[0]);
}

void copy_pieces(const LaunchArgs& args, const PieceMap& map) {
  const TensorView& y = args.outputs[0];
  // Dense memory is taken a piece at a time, other memory by rows.
  const Rows rows(y.is_dense() ? TensorView(y.data, y.dtype, {map.pieces(), map.piece()}) : y);
  const std::int64_t length = rows.length();
  args.pool->parallel_for(rows.count(), rows_per_thread(length * static_cast<std::int64_t>(size_of(y.dtype))), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) map.copy(args, row * length, (row + 1) * length, rows.row(row));
  });
}

/// A kernel of one operator that moves elements, which also takes chains of them that end there.
Kernel with_chains(Kernel kernel) {
  kernel.fuses = true;
  kernel.declines = [](const Region& region) -> Decline { return region.is_single() ? std::nullopt : declines_moves(region); };
  kernel.bind = [single = kernel.bind](const Region& region) -> Launcher {
    if (region.is_single()) return single(region);
    const auto map = std::make_shared<const PieceMap>(region, region.nodes.size(), region.results[0]);
    return [map](const LaunchArgs& args) { copy_pieces(args, *map); };
  };
  return kernel;
}

}  // namespace

extern const Kernel movement_transpose = with_chains({
    .name = "movement.transpose",
    .op = OpKind::transpose,
    .summary = "a strided copy through tiles that stay in L1; rows where the last axis keeps its place",
    .bind = [](const Problem& p) -> Launcher { return [order = permutation_of(p)](const LaunchArgs& args) { transpose(args, order); }; },
});

extern const Kernel movement_slice = with_chains({
    .name = "movement.slice",
    .op = OpKind::slice,
    .summary = "a strided copy from the first position on",
    .bind = [](const Problem& p) -> Launcher {
      return [bounds = slice_bounds(p.attributes, p.input(0).rank())](const LaunchArgs& args) { slice(args, bounds); };
    },
});

extern const Kernel movement_concat = with_chains({
    .name = "movement.concat",
    .op = OpKind::concat,
    .summary = "a strided copy for each operand",
    .bind = [](const Problem& p) -> Launcher { return [axis = axis_of(p)](const LaunchArgs& args) { concat(args, axis); }; },
});

extern const Kernel movement_split{
    .name = "movement.split",
    .op = OpKind::split,
    .summary = "a strided copy for each result",
    .bind = [](const Problem& p) -> Launcher { return [axis = axis_of(p)](const LaunchArgs& args) { split(args, axis); }; },
};

extern const Kernel movement_expand{
    .name = "movement.expand",
    .op = OpKind::expand,
    .summary = "a strided copy whose source does not move along repeated axes",
    .bind = [](const Problem&) -> Launcher { return expand; },
};

}  // namespace cermet::cpu
