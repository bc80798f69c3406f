// Copies in which axes change places: through tiles, or rows that become neighbours.
#include "base/checked.hpp"
#include "kernel/cuda/device/movement/copy.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/movement/copy.hpp"

namespace cermet::cuda {
namespace {

/// The axis, other than the last, along which the source is dense; -1 where there is none.
int dense_source_axis(const CopyAxes& axes) {
  for (int a = axes.rank() - 2; a >= 0; --a)
    if (axes.strides(a)[0] == 1) return a;
  return -1;
}

/// Whether the few rows of a plane become neighbours, and everything starts at whole 16 bytes.
bool interleaves(const copy::TransposeParams& p, const CopyAxes& outer) {
  if ((p.word_bytes != 2 && p.word_bytes != 4) || p.along > copy::interleave_rows || p.across_stride != p.along)
    return false;
  const std::int64_t width = 16 / p.word_bytes;
  bool even = p.across % width == 0 && p.along_stride % width == 0 && is_aligned(p.from, 16) && is_aligned(p.to, 16);
  for (int a = 0; a < outer.rank(); ++a)
    even = even && outer.strides(a)[0] % width == 0 && outer.strides(a)[1] % width == 0;
  return even;
}

}  // namespace

Program transpose_program() {
  return {.header = "kernel/cuda/device/movement/copy.cuh",
          .task = "cermet::copy::Transpose",
          .threads = copy::threads,
          .shared_bytes = copy::tile_shared_bytes};
}

Program interleave_program() {
  return {.header = "kernel/cuda/device/movement/copy.cuh",
          .task = "cermet::copy::Interleave",
          .threads = copy::threads,
          .shared_bytes = copy::interleave_shared_bytes};
}

void enqueue_transpose(const TaskQueue& queue, std::size_t copy, std::size_t transpose, std::size_t interleave,
                       const StridedCopy& block) {
  if (block.shape.elements() == 0) return;
  CopyAxes axes = axes_of_copy(block);
  const int last = axes.rank() - 1,
            across = last > 0 && axes.strides(last)[0] > 1 && axes.strides(last)[1] == 1 ? dense_source_axis(axes) : -1;
  if (across < 0) return enqueue_copy(queue, copy, axes, block.from, block.to, block.element_bytes);
  copy::TransposeParams params{.from = block.from,
                               .to = block.to,
                               .word_bytes = static_cast<std::uint32_t>(block.element_bytes),
                               .across = axes.size(across),
                               .along = axes.size(last),
                               .along_stride = axes.strides(last)[0],
                               .across_stride = axes.strides(across)[1],
                               .tiles_across = div_up(axes.size(across), copy::tile_side),
                               .tiles_along = div_up(axes.size(last), copy::tile_side),
                               .outer = {}};
  const CopyAxes all = axes;
  axes.remove(last);
  axes.remove(across);
  params.outer = axes.make();
  if (interleaves(params, axes)) {
    params.tiles_across = div_up(params.across, copy::interleave_range);
    queue.run(interleave, params.outer.count * params.tiles_across, params);
  } else {
    queue.run(transpose, params.outer.count * params.tiles_across * params.tiles_along, params);
  }
  declare_copy(queue, all, block.from, block.to, block.element_bytes);
}

}  // namespace cermet::cuda
