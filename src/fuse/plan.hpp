// Which nodes of a graph become one kernel: regions grown backwards from their anchors, over values without
// another reader, and forwards over the elementwise nodes that read what a product gives; then joined with the
// only region that reads them (join_groups.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/function_ref.hpp"
#include "graph/graph.hpp"
#include "op/schema/region.hpp"

namespace cermet {

/// A region and where it is in the graph.
struct FusionGroup {
  Region region;
  std::vector<std::int32_t> nodes;  ///< by node of the region; rising
  std::vector<ValueId> operands;    ///< by operand of the region; ValueId{} where one is not given
  std::vector<ValueId> results;     ///< by result of the region

  std::int32_t anchor() const { return nodes[static_cast<std::size_t>(region.anchor)]; }
};

/// What the planner asks about kernels.
struct FusionQuestions {
  FunctionRef<bool(OpKind anchor)> fuses;         ///< whether any kernel takes several nodes with such an anchor
  FunctionRef<bool(const Region& region)> takes;  ///< whether one takes these
};

/// Groups in an order in which they can run, with symbols at `maximum` and for a target (null: the CPU); each node of
/// the graph is in exactly one, which runs where its last node stood. `rounding`: of f16 and bf16 values between nodes
/// of a group; with `fast`, groups that are only taken strictly are strict. Takes time in proportion to the graph's
/// edges and to the time of the answers.
std::vector<FusionGroup> plan_fusion(const Graph& graph, const SymbolValues& maximum, const Target* target,
                                     const FusionQuestions& kernels, Rounding rounding = Rounding::strict);
/// A group for every node.
std::vector<FusionGroup> plan_fusion(const Graph& graph, const SymbolValues& maximum, const Target* target = nullptr);

/// A group may have this many nodes: each candidate costs time in proportion to its size.
inline constexpr std::size_t most_group_nodes = 32;

}  // namespace cermet
