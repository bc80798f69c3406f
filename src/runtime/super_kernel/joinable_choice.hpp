// Kernels for nodes that are to share a launch.
#pragma once

#include "op/region.hpp"
#include "select/select.hpp"

namespace cermet {

/// Gives a chosen kernel another configuration where its own forms clusters, or cannot share a launch for another reason: the cheapest of those that can, of
/// equals the last in the list. The choice stays where there is none, or where the kernel has no programs.
void choose_joinable(const Region& region, Choice& choice);

}  // namespace cermet
