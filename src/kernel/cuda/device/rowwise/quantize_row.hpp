// Where quantized rows go, and the parameters of a static quantization.
#pragma once

#include "kernel/cuda/device/rowwise/rows.hpp"

namespace cermet {

struct QuantizedRows {
  RowOperand codes, scale, zero_point;  ///< quantized values [.., length]; scale and zero point [..] or [.., groups]
  const void* static_scale;             ///< float32, one or [length]
  const void* static_offset;
};

}  // namespace cermet
