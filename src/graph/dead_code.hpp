// Nodes whose results nothing reads.
#pragma once

#include "graph/graph.hpp"

namespace cermet {

/// Leaves out every node that no output of the graph depends on, unless it updates an input in place, and constants
/// that are no longer read.
Graph remove_dead_code(const Graph& graph);

}  // namespace cermet
