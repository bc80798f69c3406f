#include "fuse/group_maker.hpp"

#include <algorithm>

namespace cermet {

GroupMaker::GroupMaker(const Graph& graph, const SymbolValues& maximum, const Target* target)
    : graph_(graph), is_result_(graph.values().size()) {
  for (const Node& node : graph.nodes()) {
    problems_.push_back(graph.problem_of(node, maximum));
    problems_.back().target = target;
  }
  for (const ValueId id : graph.kept_values()) is_result_[id.at()] = true;
}

FusionGroup GroupMaker::single(std::int32_t n) const {
  FusionGroup group{Region(problems_[static_cast<std::size_t>(n)]), {n}, node(n).inputs, node(n).outputs};
  group.operands.resize(group.region.operands.size());  // optional operands at the end may have been left out
  return group;
}

FusionGroup GroupMaker::group(const std::vector<std::int32_t>& nodes, std::int32_t anchor) const {
  FusionGroup group;
  group.nodes = nodes;
  group.region.anchor = static_cast<std::int32_t>(std::ranges::find(nodes, anchor) - nodes.begin());
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    group.region.nodes.push_back({problems_[static_cast<std::size_t>(nodes[at])], {}});
    for (std::size_t i = 0; i < group.region.nodes[at].problem.inputs.size(); ++i) {
      const ValueId id = i < node(nodes[at]).inputs.size() ? node(nodes[at]).inputs[i] : ValueId{};
      group.region.nodes[at].inputs.push_back(wire(group, id, at, i));
    }
  }
  leave(group, static_cast<std::size_t>(group.region.anchor));
  for (std::size_t at = 0; at < nodes.size(); ++at)
    if (at != static_cast<std::size_t>(group.region.anchor)) leave(group, at);
  return group;
}

RegionInput GroupMaker::wire(FusionGroup& group, ValueId id, std::size_t at, std::size_t i) const {
  if (!id) return {};
  for (std::size_t maker = 0; maker < at; ++maker) {
    const std::vector<ValueId>& made = node(group.nodes[maker]).outputs;
    if (const auto found = std::ranges::find(made, id); found != made.end())
      return RegionInput::inside(maker, static_cast<std::size_t>(found - made.begin()), Rounding::strict);
  }
  const auto known = std::ranges::find(group.operands, id);
  if (known != group.operands.end())
    return RegionInput::outside(static_cast<std::size_t>(known - group.operands.begin()));
  group.operands.push_back(id);
  group.region.operands.push_back({static_cast<std::int32_t>(at), static_cast<std::int32_t>(i)});
  return RegionInput::outside(group.operands.size() - 1);
}

/// Adds the results of a node that are not for the group's nodes alone.
void GroupMaker::leave(FusionGroup& group, std::size_t at) const {
  for (std::size_t o = 0; o < node(group.nodes[at]).outputs.size(); ++o) {
    const ValueId id = node(group.nodes[at]).outputs[o];
    const auto is_inside = [&](const Use& use) { return std::ranges::binary_search(group.nodes, use.node); };
    if (!graph_.uses(id).empty() && !is_result_[static_cast<std::size_t>(id.index)] &&
        std::ranges::all_of(graph_.uses(id), is_inside))
      continue;
    group.results.push_back(id);
    group.region.results.push_back({static_cast<std::int32_t>(at), static_cast<std::int32_t>(o)});
  }
}

}  // namespace cermet
