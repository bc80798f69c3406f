// Parameters of the det task.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::det {

inline constexpr int threads = 256;

struct Params {
  const void* x;
  void* y;
  double* matrices;      ///< a dense copy of each, which is lost
  int64_t size, stride;  ///< rows of a matrix, and elements between them
  Axes<2> batch;         ///< strides of x and y
};

}  // namespace cermet::det
