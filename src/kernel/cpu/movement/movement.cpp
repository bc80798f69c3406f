// Operators that are one strided copy, or one for each piece.
#include <memory>

#include "base/checked.hpp"
#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/movement/copy.hpp"
#include "kernel/cpu/movement/piece_map.hpp"
#include "op/moved_view.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cpu {
namespace {

void copy_view(const LaunchArgs& args, const TensorView& from) {
  const TensorView& y = args.outputs[0];
  strided_copy(y.shape, from.data, from.strides, y.data, y.strides, size_of(y.dtype), *args.pool);
}

void transpose(const LaunchArgs& args, const Permutation& permutation) {
  copy_view(args, transposed(args.inputs[0], permutation, args.outputs[0].shape));
}

void slice(const LaunchArgs& args, const PerAxis<SliceBounds>& bounds) {
  const TensorView from = sliced(args.inputs[0], bounds, args.outputs[0].shape);
  if (from.elements() > 0) copy_view(args, from);
}

void concat(const LaunchArgs& args, int axis) {
  const TensorView& y = args.outputs[0];
  std::int64_t offset = 0;
  for (const TensorView& x : args.inputs) {
    strided_copy(x.shape, x.data, x.strides, element_at(y, offset * y.strides[axis]), y.strides, size_of(y.dtype),
                 *args.pool);
    offset += x.shape[axis];
  }
}

void split(const LaunchArgs& args, int axis) {
  const TensorView& x = args.inputs[0];
  std::int64_t offset = 0;
  for (const TensorView& y : args.outputs) {
    strided_copy(y.shape, element_at(x, offset * x.strides[axis]), x.strides, y.data, y.strides, size_of(x.dtype),
                 *args.pool);
    offset += y.shape[axis];
  }
}

void expand(const LaunchArgs& args) { copy_view(args, expanded(args.inputs[0], args.outputs[0].shape)); }

void assign(const LaunchArgs& args) { copy_view(args, args.inputs[1]); }

int axis_of(const Problem& p) { return wrap_axis(p.attributes.integer("axis"), p.input(0).rank()); }

Decline declines_moves(const Region& region) {
  if (region.results.size() != 1 || region.results[0].node != region.anchor)
    return "what is moved on the way is read elsewhere";
  return PieceMap::declines(region, region.nodes.size(), region.results[0]);
}

void copy_pieces(const LaunchArgs& args, const PieceMap& map) {
  const TensorView& y = args.outputs[0];
  // Dense memory is taken a piece at a time, other memory by rows.
  const Rows rows(y.is_dense() ? TensorView(y.data, y.dtype, {map.pieces(), map.piece()}) : y);
  const std::int64_t length = rows.length();
  args.pool->parallel_for(rows.count(), rows_per_thread(length * byte_size(y.dtype)),
                          [&](std::int64_t begin, std::int64_t end) {
                            for (std::int64_t row = begin; row < end; ++row)
                              map.copy(args, row * length, (row + 1) * length, rows.row(row));
                          });
}

/// A kernel of one operator that moves elements, which also takes chains of them that end there.
Kernel with_chains(Kernel kernel) {
  kernel.fuses = true;
  kernel.declines = [](const Region& region) -> Decline {
    return region.is_single() ? std::nullopt : declines_moves(region);
  };
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
    .bind = [](const Problem& p) -> Launcher {
      return [order = permutation_of(p)](const LaunchArgs& args) { transpose(args, order); };
    },
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
    .bind = [](const Problem& p) -> Launcher {
      return [axis = axis_of(p)](const LaunchArgs& args) { concat(args, axis); };
    },
});

extern const Kernel movement_split{
    .name = "movement.split",
    .op = OpKind::split,
    .summary = "a strided copy for each result",
    .bind = [](const Problem& p) -> Launcher {
      return [axis = axis_of(p)](const LaunchArgs& args) { split(args, axis); };
    },
};

extern const Kernel movement_expand{
    .name = "movement.expand",
    .op = OpKind::expand,
    .summary = "a strided copy whose source does not move along repeated axes",
    .bind = [](const Problem&) -> Launcher { return expand; },
};

extern const Kernel movement_assign{
    .name = "movement.assign",
    .op = OpKind::assign,
    .summary = "a strided copy",
    .bind = [](const Problem&) -> Launcher { return assign; },
};

}  // namespace cermet::cpu
