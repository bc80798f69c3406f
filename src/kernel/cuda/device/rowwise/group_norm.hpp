// Parameters of group_norm and instance_norm.
#pragma once

#include "kernel/cuda/device/rowwise/rows.hpp"

namespace cermet::group_norm {

struct Params {
  RowOperand x, y;  ///< samples: [C * positions]
  RowDims dims;
  const void* weight;  ///< [C]
  const void* bias;    ///< [C]
  int64_t groups, group_channels, positions;
  float eps;
};

}  // namespace cermet::group_norm
