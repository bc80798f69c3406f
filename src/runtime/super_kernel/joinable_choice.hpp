// Kernels for nodes that are to share a launch.
#pragma once

#include "op/schema/region.hpp"
#include "select/select.hpp"

namespace cermet {

/// Gives a chosen kernel another configuration where its own forms clusters, or cannot share a launch for another
/// reason: the cheapest of those that can, of equals that for one block on an SM which leaves most shared memory to the
/// weights of others. One that can, and streams weights, gets the smallest stages, unless it was measured or asked for.
/// The choice stays where there is none, or where the kernel has no programs.
void choose_joinable(const Region& region, Choice& choice);

/// Gives a collective that the host would call the kernel over peer memory that computes the same as a launch, where
/// there is one that takes it.
void choose_launched(const Region& region, Choice& choice);

}  // namespace cermet
