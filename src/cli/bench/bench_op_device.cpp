#include "cli/bench/bench_op_device.hpp"

#include <algorithm>

#include "cli/ui/interrupt.hpp"
#include "select/tune/operand_sets.hpp"

namespace cermet::cli {
DeviceBench bench_on_device(const Region& region, const Choice& choice, const DeviceQueue& queue, ThreadPool& pool,
                            const DeviceBenchOptions& options) {
  constexpr std::int64_t most_sets = 8192;  // launches of one graph
  OperandSets sets(region, *choice.kernel, queue, pool, options.values);
  DeviceBench result;
  result.copies = options.cold ? std::clamp<std::int64_t>(
                                     div_up(4 * queue.device->target()->l2_bytes, sets.set_bytes()) + 1, 1, most_sets)
                               : 1;
  BoundOp op(region, choice, pool, queue);
  sets.make(result.copies);
  ReplayOptions replay;
  replay.seconds = options.seconds;
  replay.between = stop_if_interrupted;
  result.times = time_replays(
      *queue.stream, result.copies, [&](std::int64_t set) { op.run(sets.inputs(set), sets.outputs(set)); }, replay);
  result.fallbacks = op.fallbacks();
  return result;
}

}  // namespace cermet::cli
