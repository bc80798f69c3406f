// Parameters of the tasks of max_unpool and col2im.
#pragma once

#include "kernel/cuda/device/image/positions.hpp"

namespace cermet::unpool {

inline constexpr int threads = 256;

struct Params {
  const void* x;
  const int64_t* indices;
  void* y;
  SpatialTensor from, places, to;
  PositionOrder order;  ///< of y while it is filled with zeros, else of x
  int64_t channels;
  int32_t covered[3];
  int32_t zeros;
  uint32_t word_bytes;
};

struct BlockParams {
  const void* x;
  void* y;
  SpatialTensor to;
  PositionOrder order;  ///< of y
  int64_t batch_stride, row_stride;
  int32_t count[3], kernel[3], stride[3], dilation[3], before[3];
};

}  // namespace cermet::unpool
