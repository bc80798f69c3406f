// Configuration and parameters of the cumulative sums.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::scan {

inline constexpr int threads = 256;

struct Config {
  DType type = {};
  bool wraps = false;  ///< sums of integers

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("wraps", wraps);
  }
};

struct Params {
  const void* x;
  void* y;
  int64_t length, x_stride, y_stride;  ///< of the scanned axis
  uint32_t exclusive, reverse;
  Axes<2> lines;  ///< all other axes, strides of x and y
};

}  // namespace cermet::scan
