// Operands whose leading dimensions are walked together as rows, as kernels see them.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet {

/// Element 0 of row (i0, i1, i2) is at data + i0 * step[0] + i1 * step[1] + i2 * step[2] elements; the innermost
/// leading dimension is the first.
struct RowOperand {
  void* data;
  int64_t step[3];
};

/// Sizes of the two inner leading dimensions; inner 0: there is one, and rows are uniformly apart.
struct RowDims {
  uint32_t inner, middle;
};

}  // namespace cermet
