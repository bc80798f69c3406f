// Configuration and parameters of the scatter_nd tasks.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/movement/combine.hpp"
#include "kernel/cuda/device/movement/coordinates.hpp"

namespace cermet::scatter_nd {

inline constexpr int threads = 256;
/// What the first and the last update of a place are before any is known, as bytes that fill memory.
inline constexpr unsigned char no_first = 0x7f, no_last = 0xff;

struct Config {
  DType type = {};
  scatter::Reduction reduction = scatter::Reduction::none;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("reduction", reduction);
  }
};

struct Params {
  void* y;
  const void* updates;
  int64_t* places;        ///< of each update: the place that its coordinates pick, -1 where they are out of range
  int32_t *first, *last;  ///< of each place: the first and the last update of it
  Coordinates coordinates;
  Axes<2> tuples;  ///< rows of coordinates: strides of indices and updates
  Axes<2> slice;   ///< strides of y and updates
};

}  // namespace cermet::scatter_nd
