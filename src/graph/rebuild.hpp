// A graph with some nodes left out: what passes end with.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace cermet {

/// Keeps the nodes that `keep` marks, reads replacement[v] wherever v was read, and drops constants that nobody reads any more.
/// Inputs stay: they are what the caller binds. Names, order and scopes of what stays do not change.
Graph rebuild(const Graph& graph, const std::vector<bool>& keep, const std::vector<ValueId>& replacement);

/// replacement for rebuild() where every value stands for itself.
std::vector<ValueId> no_replacement(const Graph& graph);

}  // namespace cermet
