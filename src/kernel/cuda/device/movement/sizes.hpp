// Parameters of the tasks of iota and size_of.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::sizes {

inline constexpr int threads = 256, most_sizes = 8;

struct Config {
  DType type = {};

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type);
  }
};

struct IotaParams {
  const void* start;
  void* y;
  double step;
  Axes<2> axes;  ///< strides of y; 1 along the axis of positions, 0 along others
};

struct SizesParams {
  int64_t* y;
  int64_t stride;
  int32_t count;
  int64_t size[most_sizes];
};

}  // namespace cermet::sizes
