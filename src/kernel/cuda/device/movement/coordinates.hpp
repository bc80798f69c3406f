// Rows of coordinates that pick slices of a tensor.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet {

struct Coordinates {
  const void* indices;
  uint32_t wide;
  int32_t count;      ///< of a row
  int64_t size[8];    ///< of the axes that they index
  int64_t stride[8];  ///< along those axes, in the unit of the tensor that is indexed
};

}  // namespace cermet
