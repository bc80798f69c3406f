// Parameters of the argmax task.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::argmax {

struct Params {
  const void* x;
  void* y;
  int64_t length;
  uint32_t wide_ids;  ///< y is int64
  uint32_t vectors;   ///< rows start at multiples of 16 bytes
  Axes<2> rows;       ///< strides of the rows of x and of y
};

}  // namespace cermet::argmax
