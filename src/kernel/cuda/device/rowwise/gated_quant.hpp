// Parameters of gated activations that are quantized as they are stored.
#pragma once

#include "kernel/cuda/device/rowwise/quantize_row.hpp"

namespace cermet::gated_quant {

struct Params {
  RowOperand x;          ///< [.., 2 * length]
  RowOperand act_scale;  ///< [..], of accumulators
  QuantizedRows out;
  RowDims dims;
  uint32_t rows;
  int32_t length;
  const void* weight_scale;  ///< float32, one or [2 * length]
  const void* bias;          ///< [2 * length]
  const void* smooth;        ///< [length]
};

}  // namespace cermet::gated_quant
