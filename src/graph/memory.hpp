// Which values of a graph may be one memory.
#pragma once

#include <cstdint>
#include <vector>

#include "base/function_ref.hpp"
#include "graph/graph.hpp"

namespace cermet {

/// The operand whose memory a result of the node shares, and thereby overwrites; ValueId{} when the result has memory
/// of its own.
ValueId overwritten_by(const Node& node, std::size_t output);

/// By value, the first value whose memory it shares: itself, or the operand that its node updates in place, or, for
/// nodes that `is_view` accepts, operand 0 seen with other dimensions. The graph's nodes must come after what they
/// read.
std::vector<std::int32_t> memory_roots(const Graph& graph, FunctionRef<bool(std::int32_t node)> is_view);
/// The same where every operator that may be a view is one.
std::vector<std::int32_t> memory_roots(const Graph& graph);

/// By value: whether some node updates its memory in place, or memory that it may share.
std::vector<bool> overwritten_values(const Graph& graph);

}  // namespace cermet
