// One operator measured on a device as it is deployed: replays of a captured graph, operands out of the cache.
#pragma once

#include "device/replay_timer.hpp"
#include "select/bound_op.hpp"
#include "select/tune/operands.hpp"

namespace cermet::cli {

struct DeviceBench {
  ReplayTimes times;
  std::int64_t copies = 0;     ///< sets of operands and results used in turn
  std::int64_t fallbacks = 0;  ///< launches that the kernel's own programs did not take
};

struct DeviceBenchOptions {
  OperandValues values;
  bool cold = false;  ///< enough sets to exceed the L2 cache four times over
  double seconds = 0.1;
};

/// A region with constant dimensions.
DeviceBench bench_on_device(const Region& region, const Choice& choice, const DeviceQueue& queue, ThreadPool& pool,
                            const DeviceBenchOptions& options);

}  // namespace cermet::cli
