#include "kernel/roofline.hpp"

#include <algorithm>

namespace cermet {

double roofline_seconds(const Region& region, double operations_per_second, const DeviceLimits& limits) {
  const Cost cost = cost_of(region);
  return std::max(cost.operations / operations_per_second, cost.bytes / limits.read_bytes_per_second);
}

}  // namespace cermet
