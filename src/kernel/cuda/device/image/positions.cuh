// Sample, channel and spatial position of a number below a tensor's count.
#pragma once

#include "kernel/cuda/device/image/positions.hpp"
#include "kernel/cuda/device/movement/axes.cuh"

namespace cermet {

struct Position {
  int64_t n, c;
  int32_t at[3];
};

CERMET_DEVICE Position position_of(const PositionOrder& order, int64_t index) {
  int64_t part[5];
  if (order.wide) {
#pragma unroll
    for (int a = 4; a > 0; --a) {
      const int64_t next = index / order.size[a];
      part[a] = index - next * order.size[a];
      index = next;
    }
    part[0] = index;
  } else {
    uint32_t remaining = static_cast<uint32_t>(index);
#pragma unroll
    for (int a = 4; a > 0; --a) {
      const uint32_t next = quotient(remaining, order.by[a]);
      part[a] = remaining - next * order.by[a].divisor;
      remaining = next;
    }
    part[0] = remaining;
  }
  const bool last = order.channels_last;
  return {part[0],
          last ? part[4] : part[1],
          {static_cast<int32_t>(last ? part[1] : part[2]), static_cast<int32_t>(last ? part[2] : part[3]),
           static_cast<int32_t>(last ? part[3] : part[4])}};
}

CERMET_DEVICE int64_t offset_of(const SpatialTensor& tensor, int64_t n, int64_t c) {
  return n * tensor.batch_stride + c * tensor.channel_stride;
}
CERMET_DEVICE int64_t offset_of(const SpatialTensor& tensor, int64_t n, int64_t c, const int32_t (&at)[3]) {
  return offset_of(tensor, n, c) + at[0] * tensor.stride[0] + at[1] * tensor.stride[1] + at[2] * tensor.stride[2];
}

}  // namespace cermet
