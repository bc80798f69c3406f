// Parameters of rms_norm, add_rms_norm and layer_norm.
#pragma once

#include "kernel/cuda/device/rowwise/rows.hpp"

namespace cermet::norm {

struct Params {
  RowOperand x, residual, y, sum;
  const void* weight;
  const void* bias;
  RowDims dims;
  uint32_t rows;
  int32_t length;  ///< elements of a row
  float eps, weight_offset;
};

}  // namespace cermet::norm
