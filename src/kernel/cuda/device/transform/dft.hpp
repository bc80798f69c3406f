// Parameters of the dft tasks.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::dft {

inline constexpr int threads = 256;

struct Complex {
  float re, im;
};

struct Params {
  const void* x;
  void* y;
  Complex* work;                   ///< of each line, two of `length`
  int64_t given, length, results;  ///< numbers of x along the axis that count, of the transform, and of y
  int64_t x_stride, y_stride;      ///< along the axis
  uint32_t complex, inverse;
  Axes<2> lines;  ///< strides of x and y along the other axes
};

}  // namespace cermet::dft
