#include "fuse/plan.hpp"

#include <algorithm>

#include "runtime/step/compilation.hpp"
#include "runtime/step/spans_ranks.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

/// Leaves the first groups of several nodes, and of the others a group for every node.
void keep_first(std::vector<FusionGroup>& groups, Compilation& c, Changes& changes) {
  std::vector<FusionGroup> singles = plan_fusion(c.graph(), c.options.maximum, c.device.target()), kept;
  for (FusionGroup& group : groups) {
    if (group.nodes.size() > 1 && changes.left() > 0) {
      changes.made.push_back({{}, group.region.operators(), {}});
      for (const ValueId id : group.results) changes.made.back().results.push_back(c.graph().value(id).name);
      kept.push_back(std::move(group));
    } else {
      for (const std::int32_t n : group.nodes) kept.push_back(std::move(singles[static_cast<std::size_t>(n)]));
    }
  }
  std::ranges::stable_sort(kept, {}, [](const FusionGroup& group) { return group.nodes.back(); });
  groups = std::move(kept);
}

/// Whether a kernel that sums over ranks can.
bool has_peer_memory(const Compilation& c, const Region& region) {
  return std::ranges::all_of(region.nodes, [&](const RegionNode& node) {
    return region.is_single() || !spans_ranks(node.problem) || has_peer_memory(c, node.problem);
  });
}

/// An output may have the name already: of an image whose channels were moved, whose elements it has in another order.
void keep_values(Compilation& c, const std::vector<std::string>& names) {
  Graph& graph = c.state->graph;
  for (const FusionGroup& group : c.groups)
    for (const ValueId id : group.results) {
      const std::string& name = graph.value(id).name;
      if (std::ranges::find(names, name) == names.end() ||
          std::ranges::find(graph.outputs(), name, &GraphOutput::name) != graph.outputs().end())
        continue;
      graph.add_output(name, id);
    }
}

}  // namespace

std::string step::fuse(Compilation& c) {
  const Target* const target = c.device.target();
  const FusionMode mode = c.options.fusion.mode;
  c.groups = plan_fusion(c.graph(), c.options.maximum, target,
                         {[&](OpKind anchor) { return mode != FusionMode::none && fuses(anchor, target); },
                          [&](const Region& region) {
                            return why_apart(mode, region).empty() && has_peer_memory(c, region) && is_taken(region);
                          }},
                         c.options.fusion.rounding);
  if (Changes* const changes = c.options.fusion.changes) {
    keep_first(c.groups, c, *changes);
    keep_values(c, changes->keep);
  }
  return fmt::format("{} nodes in {} groups", c.graph().nodes().size(), c.groups.size());
}

}  // namespace cermet
