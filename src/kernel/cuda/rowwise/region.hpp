// Regions of row reductions and elementwise operators in one program.
#pragma once

#include "kernel/kernel.hpp"

namespace cermet::cuda {

/// The kernel of an operator that reduces rows which also takes regions of several operators whose anchor it is. Alone it keeps its own programs.
Kernel with_row_regions(Kernel kernel);

}  // namespace cermet::cuda
