// Groups whose last has no weight, for every family of grouped products.
#pragma once

#include "kernel/kernel.hpp"

namespace cermet::cuda {

/// A kernel of grouped_linear that computes the groups with a weight, and beside it, where there are rows without one, a launch that makes their results: what
/// follows the product, of zeros.
Kernel with_rest(const Kernel& product);

}  // namespace cermet::cuda
