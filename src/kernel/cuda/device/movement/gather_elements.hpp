// Parameters of the gather_elements task.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::gather_elements {

inline constexpr int threads = 256;

struct Params {
  const void* x;
  const void* indices;
  void* y;
  uint32_t element_bytes, wide_indices;
  int64_t size, stride;  ///< of x along the indexed axis
  Axes<3> axes;          ///< of y; strides of x, 0 along the indexed axis, of indices and of y
};

}  // namespace cermet::gather_elements
