// The least time that a region can take: the model of kernels that reach what the device can do, give or take a
// constant factor.
#pragma once

#include "base/device_limits.hpp"
#include "op/schema/region.hpp"

namespace cermet {

/// The larger of the times for its operations at this rate and for its bytes from memory, at the symbols' maximum.
double roofline_seconds(const Region& region, double operations_per_second, const DeviceLimits& limits);

}  // namespace cermet
