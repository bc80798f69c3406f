// Operators that are one strided copy, or one for each piece.
#include "kernel/cuda/device/movement/copy.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/movement/copy.hpp"
#include "op/moved_view.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cuda::movement_movement_file {
namespace {

StridedCopy copy_to(const TensorView& y, const void* from, const Shape& from_strides) {
  return {y.shape, from, from_strides, y.data, y.strides, byte_size(y.dtype)};
}

void copy_view(const LaunchArgs& args, const TensorView& from) {
  enqueue_copy(*args.queue, 0, copy_to(args.outputs[0], from.data, from.strides));
}

void transpose(const LaunchArgs& args, const Permutation& permutation) {
  const TensorView& y = args.outputs[0];
  const TensorView from = transposed(args.inputs[0], permutation, y.shape);
  enqueue_transpose(*args.queue, 0, 1, 2, copy_to(y, from.data, from.strides));
}

void slice(const LaunchArgs& args, const PerAxis<SliceBounds>& bounds) {
  copy_view(args, sliced(args.inputs[0], bounds, args.outputs[0].shape));
}

void concat(const LaunchArgs& args, int axis) {
  TensorView y = args.outputs[0];
  std::int64_t offset = 0;
  for (const TensorView& x : args.inputs) {
    TensorView part = y;
    part.shape = x.shape;
    part.data = element_at(y, offset * y.strides[axis]);
    enqueue_copy(*args.queue, 0, copy_to(part, x.data, x.strides));
    offset += x.shape[axis];
  }
}

void split(const LaunchArgs& args, int axis) {
  const TensorView& x = args.inputs[0];
  std::int64_t offset = 0;
  for (const TensorView& y : args.outputs) {
    enqueue_copy(*args.queue, 0, copy_to(y, element_at(x, offset * x.strides[axis]), x.strides));
    offset += y.shape[axis];
  }
}

void expand(const LaunchArgs& args) { copy_view(args, expanded(args.inputs[0], args.outputs[0].shape)); }

void assign(const LaunchArgs& args) { copy_view(args, args.inputs[1]); }

void reshape(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (x.data == y.data && x.is_dense() && y.is_dense()) return;
  if (x.is_dense()) return enqueue_copy(*args.queue, 0, copy_to(y, x.data, dense_strides(y.shape)));
  if (y.is_dense())
    return enqueue_copy(*args.queue, 0, copy_to(TensorView(y.data, y.dtype, x.shape), x.data, x.strides));
  copy::RelayoutParams params{x.data, y.data, static_cast<std::uint32_t>(size_of(x.dtype)), axes_of(x), axes_of(y)};
  const std::int64_t items = div_up(params.source.count, copy::threads);
  args.queue->run(1, items, params);
}

int axis_of(const Problem& p) { return wrap_axis(p.attributes.integer("axis"), p.input(0).rank()); }

std::vector<Program> copy_only(const Problem&) { return {copy_program()}; }

}  // namespace

extern const Kernel movement_transpose;
const Kernel movement_transpose{
    .name = "movement.transpose",
    .op = OpKind::transpose,
    .summary = "tiles through shared memory; a strided copy where the last axis keeps its place",
    .bind = [](const Problem& p) -> Launcher {
      return [order = permutation_of(p)](const LaunchArgs& args) { transpose(args, order); };
    },
    .programs = [](const Problem&) -> std::vector<Program> {
      return {copy_program(), transpose_program(), interleave_program()};
    }};

extern const Kernel movement_slice;
const Kernel movement_slice{.name = "movement.slice",
                            .op = OpKind::slice,
                            .summary = "a strided copy from the first position on",
                            .bind = [](const Problem& p) -> Launcher {
                              return [bounds = slice_bounds(p.attributes, p.input(0).rank())](const LaunchArgs& args) {
                                slice(args, bounds);
                              };
                            },
                            .programs = copy_only};

extern const Kernel movement_concat;
const Kernel movement_concat{.name = "movement.concat",
                             .op = OpKind::concat,
                             .summary = "a strided copy for each operand",
                             .bind = [](const Problem& p) -> Launcher {
                               return [axis = axis_of(p)](const LaunchArgs& args) { concat(args, axis); };
                             },
                             .programs = copy_only};

extern const Kernel movement_split;
const Kernel movement_split{.name = "movement.split",
                            .op = OpKind::split,
                            .summary = "a strided copy for each result",
                            .bind = [](const Problem& p) -> Launcher {
                              return [axis = axis_of(p)](const LaunchArgs& args) { split(args, axis); };
                            },
                            .programs = copy_only};

extern const Kernel movement_expand;
const Kernel movement_expand{.name = "movement.expand",
                             .op = OpKind::expand,
                             .summary = "a strided copy whose source does not move along repeated axes",
                             .bind = [](const Problem&) -> Launcher { return expand; },
                             .programs = copy_only};

extern const Kernel movement_assign;
const Kernel movement_assign{.name = "movement.assign",
                             .op = OpKind::assign,
                             .summary = "a strided copy",
                             .bind = [](const Problem&) -> Launcher { return assign; },
                             .programs = copy_only};

extern const Kernel movement_reshape;
const Kernel movement_reshape{.name = "movement.reshape",
                              .op = OpKind::reshape,
                              .summary = "a strided copy; nothing where operand and result share dense memory",
                              .bind = [](const Problem&) -> Launcher { return reshape; },
                              .programs = [](const Problem&) -> std::vector<Program> {
                                return {copy_program(),
                                        {.header = "kernel/cuda/device/movement/copy.cuh",
                                         .task = "cermet::copy::Relayout",
                                         .threads = copy::threads}};
                              }};

}  // namespace cermet::cuda::movement_movement_file
