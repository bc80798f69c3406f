// Parameters of the where task.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::where {

inline constexpr int threads = 256;

struct Params {
  const uint8_t* condition;
  const void* x;
  const void* other;
  void* y;
  uint32_t word_bytes;
  uint32_t per_thread;  ///< 1 to 4 elements of each thread in an item
  Axes<4> axes;         ///< condition, x, other, y
};

}  // namespace cermet::where
