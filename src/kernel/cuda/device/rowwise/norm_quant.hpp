// Parameters of rms_norm_quant and add_rms_norm_quant.
#pragma once

#include "kernel/cuda/device/rowwise/quantize_row.hpp"

namespace cermet::norm_quant {

struct Params {
  RowOperand x, residual, sum;
  QuantizedRows out;
  RowDims dims;
  uint32_t rows;
  int32_t length;
  const void* weight;
  const void* smooth;
  float eps, weight_offset;
};

}  // namespace cermet::norm_quant
