// What a region's boundaries cost as one kernel that walks its launches, and as launches of a captured graph: docs/notes/super-kernels-cuda.md has the
// measurements.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/device_limits.hpp"
#include "base/target.hpp"

namespace cermet {

/// Seconds of a run beyond the bytes and the arithmetic that both ways share.
struct WalkCost {
  double walk = 0, graph = 0;
  double loss() const { return walk - graph; }
};

/// Of launches that need others to have ended, as region_needs() says. `in_flight`: bytes of weights on their way into an SM. A launch that needs none is taken
/// to cost the same both ways: nobody measured one.
WalkCost walk_cost(std::span<const std::vector<std::uint32_t>> needs, std::int64_t in_flight, const DeviceLimits& limits, const Target& target);

}  // namespace cermet
