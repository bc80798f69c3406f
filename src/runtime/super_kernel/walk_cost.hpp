// What a region takes as one kernel that walks its launches, and as launches of a captured graph, beyond what both ways
// share: docs/notes/super-kernels-cuda.md has the measurements.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/device_limits.hpp"
#include "base/target.hpp"
#include "runtime/super_kernel/deal.hpp"

namespace cermet {

/// Seconds of a run beyond the bytes and the arithmetic that both ways share.
struct WalkCost {
  double walk = 0, graph = 0;
  double saved = 0;   ///< of the walk, by launches that lie side by side
  double spills = 0;  ///< of the walk, by registers that its linked code keeps in memory
  double loss() const { return walk + spills - saved - graph; }
};

/// Of launches that need others to have ended, as region_needs() says. `in_flight`: bytes of weights on their way into
/// an SM. Errs towards a loss: every walk that was measured to lose is predicted to.
WalkCost walk_cost(std::span<const DealtLaunch> launches, std::span<const std::vector<std::uint32_t>> needs,
                   std::uint32_t blocks, std::int64_t in_flight, const DeviceLimits& limits, const Target& target);

/// What `spilled_bytes` a thread of the linked code cost a run of so many launches; only the driver knows how many
/// there are.
double spill_seconds(std::size_t launches, std::int64_t spilled_bytes);

}  // namespace cermet
