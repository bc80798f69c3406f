// Rows of coordinates that pick slices of a tensor: shared by gather_nd and scatter_nd and their kernels.
#pragma once

#include "op/schema/problem.hpp"

namespace cermet {

/// Operand `indices` is [.., n]; throws Error naming it unless 0 <= n <= `most`, and n is a constant. Returns n.
int coordinate_count(const Problem& problem, std::size_t indices, int most);

}  // namespace cermet
