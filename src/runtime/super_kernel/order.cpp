#include "runtime/super_kernel/order.hpp"

#include <algorithm>
#include <numeric>

namespace cermet {
namespace {

/// Parts into which tasks that run side by side are cut.
constexpr std::uint32_t most_parts = 8;

/// By task: the length of the longest chain of tasks before it.
std::vector<std::uint32_t> depths(std::size_t tasks, std::span<const LaunchOrder> follows) {
  std::vector<std::vector<std::uint32_t>> before(tasks);
  for (const LaunchOrder& pair : follows) before[pair.after].push_back(pair.before);
  std::vector<std::uint32_t> depth(tasks);
  for (std::size_t t = 0; t < tasks; ++t)
    for (const std::uint32_t b : before[t]) depth[t] = std::max(depth[t], depth[b] + 1);
  return depth;
}

}  // namespace

std::vector<SuperChunk> super_order(std::span<const SuperTask> tasks, std::span<const LaunchOrder> follows,
                                    const SuperKernelOptions& options) {
  std::vector<SuperChunk> order;
  const bool in_turns = options.stream_fusion && !options.debug_sync_all;
  const std::vector<std::uint32_t> depth = in_turns ? depths(tasks.size(), follows) : std::vector<std::uint32_t>();
  std::vector<std::uint32_t> list(tasks.size());
  std::iota(list.begin(), list.end(), 0u);
  if (in_turns) std::ranges::stable_sort(list, {}, [&](std::uint32_t t) { return depth[t]; });
  for (std::size_t begin = 0, end; begin < list.size(); begin = end) {
    // Tasks of one depth do not wait for each other. One whose items wait for each other is taken whole.
    end = begin + 1;
    const auto is_alone = [&](std::size_t at) { return tasks[list[at]].barriers > 0; };
    while (in_turns && !is_alone(begin) && end < list.size() && depth[list[end]] == depth[list[begin]] &&
           !is_alone(end))
      ++end;
    if (is_alone(begin)) {
      for (std::uint32_t item = 0; item < tasks[list[begin]].items; ++item) order.push_back({list[begin], item, 1});
      continue;
    }
    const std::uint32_t parts = end - begin == 1 ? 1 : most_parts;
    for (std::uint32_t part = 0; part < parts; ++part)
      for (std::size_t at = begin; at < end; ++at) {
        const std::uint64_t items = tasks[list[at]].items;
        const auto first = static_cast<std::uint32_t>(items * part / parts),
                   last = static_cast<std::uint32_t>(items * (part + 1) / parts);
        if (first < last) order.push_back({list[at], first, last - first});
      }
  }
  return order;
}

}  // namespace cermet
