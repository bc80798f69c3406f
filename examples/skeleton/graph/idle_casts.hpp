// Skeleton of a compile step that changes the graph. Copy this header and its .cpp to src/graph/, and add a row to the
// list in src/runtime/compile.cpp: name, summary, whether it may be skipped, and the call. The runner times, verifies
// and dumps it.
#pragma once

#include "graph/graph.hpp"

namespace cermet {

/// Removes casts to the type that their operand has, and reads the operand instead.
Graph remove_idle_casts(const Graph& graph);

}  // namespace cermet
