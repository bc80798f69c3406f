// Regions of elementwise operators in one pass.
#pragma once

#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// A kernel of one elementwise operator, which also takes regions of such operators around its own.
Kernel with_regions(Kernel kernel);

}  // namespace cermet::cpu
