// A maximum of 2 x 2 results of a convolution, taken where they are stored: what comes before it in the region are
// bias, bounds or a function.
#pragma once

#include "kernel/cpu/conv/store.hpp"

namespace cermet::cpu {

/// Whether a region ends with such a pool.
bool ends_with_pool(const Region& region);
/// The region without its last node, whose operand is the result then.
Region without_pool(const Region& region);
/// Why a region that ends with a pool is not stored so.
Decline declines_pool(const Region& region);

/// to[c] = the maximum of four neighbours in results [4 rows][4 columns][32], for columns [0, width). NaN where any of
/// them is.
void pool_results(const float* results, std::int64_t width, float* to);

}  // namespace cermet::cpu
