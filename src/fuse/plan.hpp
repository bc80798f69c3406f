// Which nodes of a graph become one kernel: initially one group per node.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace cermet {

/// Nodes that one kernel computes, in the graph's order.
struct FusionGroup {
  std::vector<std::int32_t> nodes;
};

/// Groups in an order in which they can run; each node of the graph is in exactly one.
std::vector<FusionGroup> plan_fusion(const Graph& graph);

}  // namespace cermet
