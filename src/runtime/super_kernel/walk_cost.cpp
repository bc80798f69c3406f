#include "runtime/super_kernel/walk_cost.hpp"

#include <algorithm>

namespace cermet {
namespace {

/// On an H200, in cycles of its clock under load. Measured: from a result, behind a release and an acquire, to the SM that waits for it, where no weights are
/// on their way; and a boundary of a captured graph whose launches overlap.
constexpr double hop_cycles = 1506, launch_cycles = 2984;
/// Fitted, so that a decode step of 83 boundaries loses the 69 us that were measured: barriers of a block, parameters, the row that is read and normalized.
constexpr double block_cycles = 442;

}  // namespace

/// A release waits for all bytes that its SM has asked for.
WalkCost walk_cost(std::span<const std::vector<std::uint32_t>> needs, std::int64_t in_flight, const DeviceLimits& limits, const Target& target) {
  const double queue = static_cast<double>(in_flight * target.multiprocessors) / limits.read_bytes_per_second;
  const auto boundaries = static_cast<double>(std::ranges::count_if(needs, [](const auto& list) { return !list.empty(); }));
  return {.walk = boundaries * ((hop_cycles + block_cycles) / limits.clock_hz + queue), .graph = boundaries * launch_cycles / limits.clock_hz};
}

}  // namespace cermet
