#include "kernel/cuda/movement/copy.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/device/movement/copy.hpp"
#include "kernel/cuda/movement/axes.hpp"

namespace cermet::cuda {
namespace {

/// Elements that both sides may move as one word of at most 16 bytes.
std::int64_t word_of(const CopyAxes& axes, const void* from, const void* to, std::int64_t element_bytes) {
  std::int64_t run = axes.run_length({from != nullptr, true}, 16 / element_bytes);
  while (run > 1 && !(is_aligned(from, run * element_bytes) && is_aligned(to, run * element_bytes))) run /= 2;
  return run;
}

/// From the first to the last byte that `operand` has.
ByteRange range_of(const CopyAxes& axes, std::size_t operand, const void* data, std::int64_t element_bytes) {
  ByteRange range{static_cast<const std::byte*>(data), element_bytes};
  for (int a = 0; a < axes.rank(); ++a) {
    const std::int64_t step = (axes.size(a) - 1) * axes.strides(a)[operand] * element_bytes;
    if (step < 0) range.begin += step;
    range.bytes += std::abs(step);
  }
  return range;
}

}  // namespace

void declare_copy(const TaskQueue& queue, const CopyAxes& axes, const void* from, const void* to,
                  std::int64_t element_bytes) {
  queue.declare({from != nullptr ? range_of(axes, 0, from, element_bytes) : ByteRange{}},
                {range_of(axes, 1, to, element_bytes)});
}

CopyAxes axes_of_copy(const StridedCopy& block) {
  CopyAxes axes;
  for (int a = 0; a < block.shape.rank(); ++a)
    axes.append(block.shape[a], {block.from_strides[a], block.to_strides[a]});
  return axes;
}

Program copy_program() {
  return {.header = "kernel/cuda/device/movement/copy.cuh",
          .task = "cermet::copy::Task",
          .threads = copy::threads,
          .min_blocks = 3};
}

void enqueue_copy(const TaskQueue& queue, std::size_t copy, const CopyAxes& axes, const void* from, void* to,
                  std::int64_t element_bytes) {
  if (axes.count() == 0) return;
  const std::int64_t run = word_of(axes, from, to, element_bytes);
  copy::Params params{from, to, static_cast<std::uint32_t>(run * element_bytes), 1, axes.make(run, {true, true})};
  // Several words of a thread keep more loads in flight, but not at the price of idle SMs.
  if (params.axes.count >= std::int64_t{copy::threads} * 4 * queue.target().multiprocessors * 2) params.per_thread = 4;
  const std::int64_t each = std::int64_t{copy::threads} * params.per_thread, items = div_up(params.axes.count, each);
  queue.run(copy, items, params);
  declare_copy(queue, axes, from, to, element_bytes);
}

void enqueue_copy(const TaskQueue& queue, std::size_t copy, const StridedCopy& block) {
  enqueue_copy(queue, copy, axes_of_copy(block), block.from, block.to, block.element_bytes);
}

}  // namespace cermet::cuda
