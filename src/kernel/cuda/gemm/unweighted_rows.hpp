// Groups whose last has no weight, for every family of grouped products.
#pragma once

#include <functional>

#include "kernel/kernel.hpp"

namespace cermet::cuda {

/// A kernel of grouped_linear that computes the groups with a weight, and beside it, where there are rows without one,
/// a launch that makes their results: what follows the product, of zeros. `inside`: of a product whose own launches
/// make some of them, whether this one does; null where none of its launches do.
using MakesUnweighted = std::function<bool(const LaunchArgs&)>;
Kernel with_unweighted_rows(const Kernel& product,
                            const std::function<MakesUnweighted(const Region&, const Config&)>& inside = {});

}  // namespace cermet::cuda
