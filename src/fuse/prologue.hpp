// Groups of two: a matrix product and the norm whose result only it reads, computed in the product's kernel.
#pragma once

#include <vector>

#include "base/function_ref.hpp"
#include "fuse/plan.hpp"

namespace cermet {

/// Joins the group of `product` with that of the node `first` which makes its operand 0, where no other node reads that operand, nothing between the two
/// reads the first node's other results, and `accepts` says that some kernel takes both. The joined group runs where the product ran.
std::vector<FusionGroup> fuse_prologues(const Graph& graph, std::vector<FusionGroup> groups, FunctionRef<bool(const Node& first, const Node& product)> accepts);

}  // namespace cermet
