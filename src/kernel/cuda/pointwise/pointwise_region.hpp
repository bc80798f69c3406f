// Regions of elementwise operators in one program.
#pragma once

#include "kernel/kernel.hpp"

namespace cermet::cuda {

/// The kernel of an elementwise operator that also takes regions of several whose anchor it is. Alone it keeps its own
/// programs, which know types that steps do not (64-bit integers), and whose attributes are parameters of a launch.
Kernel with_regions(Kernel kernel);

}  // namespace cermet::cuda
