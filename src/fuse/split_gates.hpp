// A gated activation that quantizes its rows, in two: the activation can end the product before it, and the
// quantization begin the one after it.
#pragma once

#include "base/function_ref.hpp"
#include "fuse/nodes.hpp"

namespace cermet {

/// The graph with silu_and_mul and dynamic_quant in the place of each silu_and_mul_quant whose gates a kernel computes
/// together with the product that makes them, with symbols at `maximum` and for a target (null: the CPU). `takes`:
/// whether a kernel takes a region. No kernel runs more often for it: experts' quantization stands where both were, if
/// nothing takes it in; other rows are split only where a kernel takes it into the product after it.
SplitNodes split_gates(const Graph& graph, const SymbolValues& maximum, const Target* target,
                       FunctionRef<bool(const Region& region)> takes);

}  // namespace cermet
