// Parameters of the pooling tasks.
#pragma once

#include "kernel/cuda/device/image/positions.hpp"

namespace cermet::pool {

inline constexpr int threads = 256;

enum class Kind : int32_t { max, average, norm };

struct Params {
  const void* x;
  void* y;
  int64_t* indices;  ///< null: not asked for
  SpatialTensor from, to, places;
  PositionOrder order;  ///< of y
  int64_t channels;
  int32_t kernel[3], stride[3], dilation[3], before[3], after[3];
  int32_t count_padding, columns, power;
};

}  // namespace cermet::pool
