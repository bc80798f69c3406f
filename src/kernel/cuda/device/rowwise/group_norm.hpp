// Parameters of group_norm and instance_norm.
#pragma once

#include "kernel/cuda/device/rowwise/rows.hpp"

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

}  // namespace cermet::group_norm
