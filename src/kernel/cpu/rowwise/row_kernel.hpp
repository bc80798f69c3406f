// Regions along rows: norms, softmax, reductions, gates, their quantization, and elementwise operators around them.
#pragma once

#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// A kernel that runs the row program of an operator and of regions around it.
Kernel row_kernel(std::string name, OpKind op, std::string summary);
/// A kernel of one operator, which also takes regions along rows around its own.
Kernel with_row_regions(Kernel kernel);

}  // namespace cermet::cpu
