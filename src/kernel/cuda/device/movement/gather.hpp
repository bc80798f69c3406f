// Parameters of the gather task.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::gather {

inline constexpr int threads = 256;

struct Params {
  const void* x;
  const void* indices;
  void* y;
  uint32_t word_bytes, wide_indices;
  uint32_t per_thread;         ///< 1 to 4 words of each thread in an item
  int64_t size, slice_stride;  ///< of the indexed axis; the stride in words
  Axes<3> axes;  ///< of y; strides of x but for the indexed axis (words), of indices (elements), of y (words)
};

}  // namespace cermet::gather
