// Parameters of group_norm and instance_norm.
#pragma once

#include "kernel/cuda/device/rowwise/row_params.hpp"

namespace cermet::group_norm {

struct Params {
  RowOperand x, y;  ///< groups of channels: [group_channels * positions]
  RowDims dims;
  uint32_t rows;       ///< groups of all samples
  int32_t length;      ///< of a row
  const void* weight;  ///< [C]
  const void* bias;    ///< [C]
  uint32_t groups, group_channels, positions;
  float eps;
};

/// Shared memory for the moments that a cluster's warps and blocks exchange, and their barrier.
CERMET_HOST_DEVICE constexpr int cluster_moments_bytes(int threads, int cluster) {
  return 16 * (threads / 32 + cluster + 1);
}

}  // namespace cermet::group_norm
