// Parameters of softmax over rows of f64.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::softmax_plain {

inline constexpr int threads = 256;

struct Params {
  const double* x;
  double* y;
  int64_t length;
  int64_t logarithm;  ///< not 0: of the result
  Axes<2> rows;       ///< strides of x and y
};

}  // namespace cermet::softmax_plain
