// What is next to a node of a graph, or to some.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace cermet {

/// The nodes that make a node's operands, the first operand's last.
std::vector<std::int32_t> makers_of(const Graph& graph, std::int32_t node);
/// Whether two nodes are in the same super-kernel, or alike in none: what runs as one kernel must not cross the border
/// of a super-kernel.
bool share_super_kernel(const Graph& graph, std::int32_t a, std::int32_t b);
/// The first node outside that reads a result of one inside; -1 where there is none. `nodes`: rising.
std::int32_t first_reader(const Graph& graph, const std::vector<std::int32_t>& nodes);

/// Whether a node is a reshape of what nodes outside of the group (rising) have stored densely. Inputs of the graph may
/// be strided, and parts of a split are.
bool shares_memory(const Graph& graph, std::int32_t node, const std::vector<std::int32_t>& group);

}  // namespace cermet
