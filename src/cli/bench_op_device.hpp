// One operator measured on a device as it is deployed: replays of a captured graph, operands out of the cache.
#pragma once

#include "cli/console.hpp"
#include "select/bound_op.hpp"

namespace cermet::cli {

struct DeviceBench {
  double median_seconds = 0, min_seconds = 0;  ///< of one launch
  std::int64_t copies = 0;                     ///< sets of operands used in turn
  std::int64_t launches = 0;                   ///< of one graph
  std::int64_t graphs = 0;                     ///< replays that were timed
};

/// A problem with constant dimensions. With `cold`, copies of the operands exceed the L2 cache four times.
DeviceBench bench_on_device(const Problem& problem, const Kernel& kernel, const DeviceQueue& queue, ThreadPool& pool, std::uint64_t seed, bool cold,
                            double seconds);

}  // namespace cermet::cli
