// Parameters of the task that narrows indices.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::narrow_indices {

inline constexpr int threads = 256;

struct Params {
  const int64_t* from;
  int32_t* to;   ///< dense
  Axes<1> axes;  ///< of `from`
};

}  // namespace cermet::narrow_indices
