// Configuration and parameters of the scatter tasks.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/movement/axes.hpp"
#include "kernel/cuda/device/movement/combine.hpp"

namespace cermet::scatter {

inline constexpr int threads = 256;

struct Config {
  DType type = {};
  Reduction reduction = Reduction::none;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("reduction", reduction);
  }
};

struct Params {
  void* y;
  const void* indices;
  const void* updates;
  uint32_t wide_indices;
  int32_t axis;                                      ///< its place in `axes`; -1 where they are columns
  int64_t size, count;                               ///< of the indexed axis in y and in the indices
  int64_t y_stride, indices_stride, updates_stride;  ///< along it
  Axes<3> axes;                                      ///< strides of y, indices and updates along the others
};

}  // namespace cermet::scatter
