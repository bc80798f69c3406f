#include "kernel/cuda/movement_copy.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/device/movement/copy.hpp"
#include "kernel/cuda/movement_axes.hpp"

namespace cermet::cuda {
namespace {

/// Operand 0 is the source, operand 1 the destination.
AxesBuilder<2> axes_of_copy(const StridedCopy& block) {
  AxesBuilder<2> axes;
  for (int a = 0; a < block.shape.rank(); ++a) axes.append(block.shape[a], {block.from_strides[a], block.to_strides[a]});
  return axes;
}

/// Elements that both sides may move as one word of at most 16 bytes.
std::int64_t word_of(const AxesBuilder<2>& axes, const StridedCopy& block) {
  std::int64_t run = axes.run_length({block.from != nullptr, true}, 16 / block.element_bytes);
  while (run > 1 && !(is_aligned(block.from, run * block.element_bytes) && is_aligned(block.to, run * block.element_bytes))) run /= 2;
  return run;
}

void enqueue_words(const TaskQueue& queue, std::size_t copy, const StridedCopy& block, const AxesBuilder<2>& builder) {
  const std::int64_t run = word_of(builder, block);
  copy::Params params{block.from, block.to, static_cast<std::uint32_t>(run * block.element_bytes), 1, builder.make(run, {true, true})};
  // Several words of a thread keep more loads in flight, but not at the price of idle multiprocessors.
  if (params.axes.count >= std::int64_t{copy::threads} * 4 * queue.target().multiprocessors * 2) params.per_thread = 4;
  queue.run(copy, div_up(params.axes.count, std::int64_t{copy::threads} * params.per_thread), params);
}

/// The axis, other than the last, along which the source is dense; -1 where there is none.
int dense_source_axis(const AxesBuilder<2>& axes) {
  for (int a = axes.rank() - 2; a >= 0; --a)
    if (axes.strides(a)[0] == 1) return a;
  return -1;
}

}  // namespace

Program copy_program() { return {.header = "kernel/cuda/device/movement/copy.cuh", .task = "cermet::copy::Task", .threads = copy::threads, .min_blocks = 3}; }

Program transpose_program() {
  return {
      .header = "kernel/cuda/device/movement/copy.cuh", .task = "cermet::copy::Transpose", .threads = copy::threads, .shared_bytes = copy::tile_shared_bytes};
}

void enqueue_copy(const TaskQueue& queue, std::size_t copy, const StridedCopy& block) {
  if (block.shape.elements() != 0) enqueue_words(queue, copy, block, axes_of_copy(block));
}

void enqueue_transpose(const TaskQueue& queue, std::size_t copy, std::size_t transpose, const StridedCopy& block) {
  if (block.shape.elements() == 0) return;
  AxesBuilder<2> axes = axes_of_copy(block);
  const int last = axes.rank() - 1, across = last > 0 && axes.strides(last)[0] > 1 && axes.strides(last)[1] == 1 ? dense_source_axis(axes) : -1;
  if (across < 0) return enqueue_words(queue, copy, block, axes);
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
  axes.remove(last);
  axes.remove(across);
  params.outer = axes.make();
  queue.run(transpose, params.outer.count * params.tiles_across * params.tiles_along, params);
}

}  // namespace cermet::cuda
