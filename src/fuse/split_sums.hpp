// A sum that is normalized, in two: the product before it can add it, so that the norm reads one row in place of two.
#pragma once

#include "base/function_ref.hpp"
#include "fuse/nodes.hpp"

namespace cermet {

/// The graph with add and rms_norm (rms_norm_quant) in the place of each add_rms_norm (add_rms_norm_quant) of float32
/// rows of which a kernel adds one to what its product gives, with symbols at `maximum` and for a GPU; for the CPU
/// (target null) nothing changes. `takes`: whether a kernel takes a region. No kernel runs more often for it.
SplitNodes split_sums(const Graph& graph, const SymbolValues& maximum, const Target* target,
                      FunctionRef<bool(const Region& region)> takes);

}  // namespace cermet
