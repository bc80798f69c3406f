#include "kernel/cuda/declare.hpp"

#include <algorithm>

namespace cermet::cuda {

void declare_operands(const LaunchArgs& args, const OperandUse& use) {
  if (!args.queue->wants_ranges()) return;
  std::array<ByteRange, 64> reads{use.also_reads}, writes;  // no allocation: plans are made again and again
  CERMET_ASSERT(args.inputs.size() < reads.size() && args.outputs.size() <= writes.size());
  std::size_t count = 1;
  for (const TensorView& view : args.inputs) {
    if (&view == use.unread) continue;
    reads[count] = byte_range(view);
    reads[count++].early = view.elements() > 0 && std::ranges::find(use.early, &view) != use.early.end();
  }
  std::ranges::transform(args.outputs, writes.begin(), byte_range);
  args.queue->declare(std::span(reads).first(count), std::span(writes).first(args.outputs.size()));
}

}  // namespace cermet::cuda
