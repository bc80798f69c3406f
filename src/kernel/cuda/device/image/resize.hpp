// Configuration and parameters of resize's tasks: one makes a table for an axis, the other reads them.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/movement/axes.hpp"
#include "op/resize_axis.hpp"

namespace cermet::resize {

inline constexpr int threads = 256, most_resized = 4;

/// Taps of an axis: those of element i at [i * taps + k].
struct Table {
  int32_t* place;
  float* weight;
  uint8_t* outside;  ///< whether element i is extrapolated
};

struct TableParams {
  Rule rule;
  Axis axis;
  Table table;
};

struct Config {
  DType type = {};  ///< in mode nearest, an unsigned integer of the elements' size
  bool nearest = false;
  int run = 1;  ///< elements of a thread

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("nearest", nearest), visit("run", run);
  }
};

struct Params {
  const void* x;
  void* y;
  Axes<2> axes;            ///< of y, none merged; strides of x and y
  int32_t slot[max_axes];  ///< which table an axis has; -1 for none
  Table tables[most_resized];
  int32_t taps[most_resized];    ///< 1 for tables that are not there
  int64_t stride[most_resized];  ///< of x along the axis
  int32_t crops;
  float extrapolation;
  uint64_t filler[2];  ///< the same, as elements
};

}  // namespace cermet::resize
