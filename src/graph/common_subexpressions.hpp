// Nodes that compute what an earlier node has computed.
#pragma once

#include "graph/graph.hpp"

namespace cermet {

/// Leaves out every node that has the operator, operands and attributes of an earlier one, and reads the earlier one's
/// results instead. Nodes that update memory in place stay, and so do those whose results are updated later: a separate
/// copy may be intended.
Graph merge_common_subexpressions(const Graph& graph);

}  // namespace cermet
