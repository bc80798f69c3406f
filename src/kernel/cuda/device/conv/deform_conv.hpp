// Parameters of the task of deform_conv.
#pragma once

#include "kernel/cuda/device/image/positions.hpp"

namespace cermet::deform_conv {

inline constexpr int threads = 256;

struct Params {
  const void* x;
  const void* weight;
  const void* offset;
  const void* bias;  ///< null: none
  const void* mask;  ///< null: none
  void* y;
  SpatialTensor from, moves, scales, to;
  PositionOrder order;  ///< of y
  int64_t weight_stride[3];
  int32_t inner;  ///< channels of x behind one of y
  int32_t outer;  ///< channels of y in a group
  int32_t each;   ///< channels of x in an offset group
  int32_t kernel[2], stride[2], dilation[2], before[2];
};

}  // namespace cermet::deform_conv
