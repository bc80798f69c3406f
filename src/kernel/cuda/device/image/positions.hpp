// Samples with channels and three spatial axes, as tasks see them.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet {

/// Elements of [N, C, spatial..] or [N, spatial.., C]; operands with fewer spatial axes have leading ones of one
/// element. Strides in elements.
struct SpatialTensor {
  int64_t batch_stride, channel_stride;
  int64_t stride[3];
  int32_t size[3];
};

/// The order in which positions of a tensor are counted: its five axes, slowest first, with the constants of division.
struct PositionOrder {
  int64_t count;
  int32_t wide;  ///< whether positions reach 2^31
  int32_t
      channels_last;  ///< the axes are sample, three spatial ones, channel; else sample, channel, three spatial ones
  Divisor by[5];
  int64_t size[5];
};

}  // namespace cermet
