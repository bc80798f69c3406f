// Chains of products: a group that one other group alone reads runs with it, where a kernel computes both and what goes
// from one to the other stays in a cache.
#pragma once

#include <vector>

#include "fuse/plan.hpp"

namespace cermet {

/// Joins groups of a plan, which stays one. Every contract of a group that is made here is strict.
void join_groups(std::vector<FusionGroup>& groups, const Graph& graph, const SymbolValues& maximum,
                 const Target* target, const FusionQuestions& kernels);

}  // namespace cermet
