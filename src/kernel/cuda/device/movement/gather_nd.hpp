// Parameters of the gather_nd task.
#pragma once

#include "kernel/cuda/device/movement/coordinates.hpp"

namespace cermet::gather_nd {

inline constexpr int threads = 256;

struct Params {
  const void* x;
  void* y;
  uint32_t word_bytes;
  Coordinates coordinates;  ///< strides in words
  Axes<3> axes;  ///< of y; strides of x but for the indexed axes (words), of rows of indices (elements), of y (words)
};

}  // namespace cermet::gather_nd
