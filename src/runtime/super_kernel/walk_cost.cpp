#include "runtime/super_kernel/walk_cost.hpp"

#include <algorithm>

namespace cermet {
namespace {

/// On an H200, in cycles of its clock under load. Measured: from a result, after a release and an acquire, to the SM
/// that waits for it, where no weights are on their way; and a boundary of a captured graph whose launches overlap.
constexpr double hop_cycles = 1506, launch_cycles = 2984;
/// Fitted, so that a decode step of 83 boundaries loses the 69 us that were measured: barriers of a block, parameters,
/// the row that is read and normalized.
constexpr double block_cycles = 442;

/// Seconds at no launches, of lines through regions of 4, 8 and 16 launches.
constexpr double walk_start_seconds = 7.5e-6, graph_start_seconds = 5.3e-6;
/// What a body loses that streams no weights, as a part of its launch's modelled time: it has fewer threads than its
/// launch, one block an SM, no clusters. Measured between 0.67 (rows, a product of whole blocks) and 0.7 (attention in
/// shares).
constexpr double slower_body = 0.7;
/// Nor less than rows of 16 KB were measured to lose: shorter ones were not measured.
constexpr double least_slower_seconds = 0.65e-6;

/// Of what the dealer says is saved, 0.93 and 0.97 were (two and four branches). A fifth more is not counted, because
/// walks must not be slower.
constexpr double counted_part = 0.75;

/// Measured from 3.9 ns (rows of 4096) to 6.6 (mixtures) a byte and launch, of walks that spill 456 to 608 bytes.
constexpr double seconds_per_spilled_byte = 6.6e-9;

}  // namespace

/// A release waits for all bytes that its SM has asked for.
WalkCost walk_cost(std::span<const DealtLaunch> launches, std::span<const std::vector<std::uint32_t>> needs,
                   std::uint32_t blocks, std::int64_t in_flight, const DeviceLimits& limits, const Target& target) {
  const double queue = static_cast<double>(in_flight * target.multiprocessors) / limits.read_bytes_per_second;
  const double boundary = (hop_cycles + block_cycles) / limits.clock_hz + queue;
  WalkCost cost{.walk = walk_start_seconds, .graph = graph_start_seconds};
  double in_turn = 0;
  // Products beside each other, whose weights share the memory's speed, were not measured: they have all blocks here.
  std::vector<DealtLaunch> dealt(launches.begin(), launches.end());
  for (DealtLaunch& launch : dealt) {
    if (launch.items == 0) continue;
    if (launch.streams) launch.items = (launch.items + blocks - 1) / blocks * blocks;
    const double seconds = launch.seconds(blocks);
    cost.walk += boundary + (launch.streams ? 0 : std::max(least_slower_seconds, slower_body * seconds));
    cost.graph += launch_cycles / limits.clock_hz;
    in_turn += boundary + seconds;
  }
  cost.saved = counted_part * std::max(0.0, in_turn - dealt_seconds(dealt, needs, blocks, boundary));
  return cost;
}

double spill_seconds(std::size_t launches, std::int64_t spilled_bytes) {
  return static_cast<double>(launches) * static_cast<double>(spilled_bytes) * seconds_per_spilled_byte;
}

}  // namespace cermet
