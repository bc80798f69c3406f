// Parameters of the pad task.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::pad {

inline constexpr int threads = 256;

enum class Mode : int32_t { constant, reflect, edge };

struct Params {
  const void* x;
  void* y;
  uint32_t word_bytes;
  Mode mode;
  alignas(16) uint64_t constant[2];  ///< one word of up to 16 bytes, repeated
  int64_t before[max_axes];          ///< words in front of each axis
  int64_t source[max_axes];          ///< sizes of x; those of `axes` are of y
  Axes<2> axes;                      ///< strides of x and y
};

}  // namespace cermet::pad
