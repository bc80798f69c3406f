// The smallest graph that still fails, found by leaving things out.
#pragma once

#include <functional>

#include "graph/graph.hpp"

namespace cermet::test {

/// Leaves out results and nodes (what a node gave becomes an input, or the operand of its type) one after the other
/// while `fails` stays true of what is left.
Graph shrink(Graph graph, const std::function<bool(const Graph&)>& fails);

}  // namespace cermet::test
