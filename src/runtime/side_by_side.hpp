// Values of branches that run side by side keep memory of their own.
#pragma once

#include <span>
#include <vector>

#include "fuse/plan.hpp"
#include "runtime/placement.hpp"

namespace cermet {

/// Lets memory live until every later step of its walk follows from all that touch it: until then a step of another
/// branch, which may run at the same time, must not write it. `walk_of`: by step, the walk that it is part of, whose
/// steps wait for each other's values alone; -1: it follows all before. `root`: by value, whose memory it has;
/// `lifetimes`: by value, those of roots count.
void outlive_branches(std::span<const FusionGroup> groups, std::span<const std::int32_t> walk_of,
                      std::span<const std::int32_t> root, std::vector<Lifetime>& lifetimes);

}  // namespace cermet
