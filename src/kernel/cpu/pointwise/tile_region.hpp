// Regions of elementwise operators in one pass.
#pragma once

#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// A kernel of one elementwise operator, which also takes regions of such operators around its own.
Kernel with_regions(Kernel kernel);

/// A region, which may be of one operator, by its tile program; none where it has none.
Launcher by_tile_program(const Region& region);

}  // namespace cermet::cpu
