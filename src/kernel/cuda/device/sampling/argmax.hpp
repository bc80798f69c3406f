// Configuration and parameters of the argmax task.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::argmax {

struct Config {
  DType x = {};
  bool smallest = false, last = false;
  int threads = 0, cluster = 1;
  int pieces = 1;  ///< of a row, each a block of a walk; without one the last of them does it all

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("x", x), visit("smallest", smallest), visit("last", last), visit("threads", threads);
    visit("cluster", cluster), visit("pieces", pieces);
  }
};

struct Params {
  const void* x;
  void* y;
  int64_t length;
  uint32_t wide_ids;  ///< y is int64
  uint32_t vectors;   ///< rows start at multiples of 16 bytes
  Axes<2> rows;       ///< strides of the rows of x and of y
};

}  // namespace cermet::argmax
