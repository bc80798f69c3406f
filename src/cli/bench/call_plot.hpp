// The candidates of a call over its sizes.
#pragma once

#include "base/device_limits.hpp"
#include "cli/ui/line_plot.hpp"
#include "op/schema/region.hpp"

namespace cermet::cli {

/// A line for each kernel that takes the region at some size of its symbol, from 1 to the symbol's maximum, with its
/// least modelled time, and a dot where it was measured; last the least time that the device's limits allow. Throws
/// Error where the region has no symbol, or several, or nothing to draw.
LinePlot plot_of_call(Region region, int threads, const DeviceLimits& limits);

/// The least time that limits allow a region, at its symbols' maximum.
double limit_seconds(const Region& region, const DeviceLimits& limits);

}  // namespace cermet::cli
