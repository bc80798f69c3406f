// When the tasks of super-kernels ran.
#include <algorithm>
#include <limits>

#include "runtime/executable_state.hpp"

namespace cermet {
namespace {

/// Times of a region that was launched as one, by block, then by launch, in nanoseconds of the GPU's clock. A block
/// without items of a launch has none of it.
struct RegionTimes {
  const DeviceRegion& region;
  const SuperRegion& formed;
  std::vector<walk::Times> all;
};

std::vector<RegionTimes> times_of(const CapturedRun& run, std::span<const SuperRegion> formed, Stream& stream) {
  std::vector<RegionTimes> list;
  for (const SuperRegion& each : formed)
    for (const auto& region : run.regions)
      if (each.options.profile && region->first() == each.first_launch)
        list.push_back({*region, each, region->times(stream)});
  return list;
}

}  // namespace

std::vector<TaskTime> Executable::task_times() {
  State& state = *state_;
  if (!state.captures.replayed || !state.super) return state.timing.tasks;
  const std::vector<RegionTimes> list =
      times_of(*state.captures.replayed, state.super->formation.regions, *state.queue.stream);
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  for (const RegionTimes& times : list)
    for (const walk::Times& each : times.all)
      if (each.begin != 0) first = std::min(first, each.begin);
  const auto seconds = [&](std::uint64_t time) { return static_cast<double>(time - first) * 1e-9; };
  const std::span<const Launch> launches = std::as_const(state.plan).launches();
  std::vector<TaskTime> tasks;
  for (const RegionTimes& times : list)
    for (std::size_t i = 0; i < times.all.size(); ++i) {
      const walk::Times& each = times.all[i];
      if (each.begin == 0) continue;
      const std::size_t launch = times.region.first() + i % times.region.count();
      tasks.push_back({times.formed.name, launches[launch].step, static_cast<int>(i / times.region.count()),
                       seconds(each.begin), seconds(std::max(each.begin, each.ready)), seconds(each.computed),
                       seconds(each.announced)});
    }
  return tasks;
}

}  // namespace cermet
