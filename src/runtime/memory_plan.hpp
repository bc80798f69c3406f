// Places in one arena for values that live for part of a run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fuse/plan.hpp"
#include "graph/graph.hpp"
#include "runtime/placement.hpp"

namespace cermet {

/// Where every value of a graph lives.
struct MemoryPlan {
  std::vector<std::int32_t> root;    ///< by value: the value whose memory it shares; itself when it has its own
  std::vector<std::int64_t> offset;  ///< by value: byte offset in the arena of its root; -1 for inputs and constants
  std::int64_t bytes = 0;            ///< of the arena
  std::int64_t lower_bound = 0;      ///< see Placement
  std::int64_t total = 0;            ///< bytes without sharing memory
};

/// Plans intermediates at the symbols' maximum; step i runs groups[i]. Results of the graph live to the end, unused
/// results of a node while it runs, and an output that shares its input's memory makes both live as one. A result takes
/// the memory of an operand that dies with the step where the operator can work in place. `views` lists, in rising
/// order, nodes whose result is operand 0 seen with other dimensions; no step runs them. `strided`, by value (empty:
/// none), marks results that are not dense in the memory they share. `walk_of`, by step (empty: none is), says which
/// steps may run side by side, see outlive_branches(). The value of a `direct` update is in its input's memory.
MemoryPlan plan_memory(const Graph& graph, std::span<const FusionGroup> groups, std::span<const std::int32_t> views,
                       const SymbolValues& maximum, const std::vector<bool>& strided = {},
                       std::span<const std::int32_t> walk_of = {}, std::span<const GraphUpdate> direct = {});

/// Bytes of a dense tensor with these symbols. Throws Error naming the dimensions when one is negative or the product
/// exceeds 2^63.
std::int64_t dense_bytes(const TensorType& type, const SymbolValues& symbols);

}  // namespace cermet
