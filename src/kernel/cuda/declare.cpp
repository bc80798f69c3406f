#include "kernel/cuda/declare.hpp"

#include <algorithm>

namespace cermet::cuda {

void declare_operands(const LaunchArgs& args, const OperandUse& use) {
  if (!args.queue->wants_ranges()) return;
  std::vector<ByteRange> reads{use.also_reads}, writes;
  for (const TensorView& view : args.inputs) {
    if (&view == use.unread) continue;
    ByteRange range = byte_range(view);
    range.early = range.bytes > 0 && std::ranges::find(use.early, &view) != use.early.end();
    reads.push_back(range);
  }
  for (const TensorView& view : args.outputs) writes.push_back(byte_range(view));
  args.queue->declare(reads, writes);
}

}  // namespace cermet::cuda
