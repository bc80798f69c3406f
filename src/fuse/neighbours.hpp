// What is next to a node of a graph, or to some.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace cermet {

/// The nodes that make a node's operands, the first operand's last.
std::vector<std::int32_t> makers_of(const Graph& graph, std::int32_t node);
/// The first node outside that reads a result of one inside; -1 where there is none. `nodes`: rising.
std::int32_t first_reader(const Graph& graph, const std::vector<std::int32_t>& nodes);

}  // namespace cermet
