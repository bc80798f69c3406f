// Where planners leave a gate after a product to a launch of its own.
#pragma once

#include "kernel/region_cut.hpp"
#include "op/schema/region.hpp"

namespace cermet::cuda {

/// Kernel::cut of the products that Hopper's own, and the slower ones beside it, take: separate for gates of weights
/// whose scales cover blocks.
RegionCut gate_cut(const Region& region);

}  // namespace cermet::cuda
