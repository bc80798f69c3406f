// A gated activation that quantizes its rows, in two: the activation can end the product before it, and the quantization begin the one behind it.
#pragma once

#include "base/function_ref.hpp"
#include "graph/graph.hpp"
#include "op/region.hpp"

namespace cermet {

/// The graph with silu_and_mul and dynamic_quant in the place of each silu_and_mul_quant of experts' rows whose gates a kernel computes together with the
/// product that makes them, with symbols at `maximum` and for a target (null: the CPU). `takes`: whether a kernel takes a region. No kernel runs twice for it:
/// the quantization stands where both were, if nothing takes it in.
struct SplitGates {
  Graph graph;
  std::size_t count = 0;
};
SplitGates split_gates(const Graph& graph, const SymbolValues& maximum, const Target* target, FunctionRef<bool(const Region& region)> takes);

}  // namespace cermet
