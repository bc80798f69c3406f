// Parameters of the topk task.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::topk {

/// Elements that are chosen by a cut and then sorted in shared memory, at most; more are chosen one after the other.
inline constexpr int most_sorted = 2048;

struct Params {
  const void* x;
  void* values;
  void* ids;
  int64_t length;
  uint32_t wide_ids;
  Axes<3> rows;  ///< strides of the rows of x, values and ids
};

}  // namespace cermet::topk
