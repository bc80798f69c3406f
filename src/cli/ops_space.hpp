// cermet explain op NAME --space: what a tuner may choose from.
#pragma once

#include "cli/ui/console.hpp"
#include "op/schema/region.hpp"

namespace cermet::cli {

/// Prints the space of every kernel that takes the region: fields with their values, constraints, how many points there
/// are. `threads`: of the CPU.
void print_spaces(Console& console, const Region& region, int threads);

}  // namespace cermet::cli
