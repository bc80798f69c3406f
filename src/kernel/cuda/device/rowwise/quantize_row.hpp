// Where quantized rows go.
#pragma once

#include "kernel/cuda/device/rowwise/rows.hpp"

namespace cermet {

struct QuantizedRows {
  RowOperand codes, scale, zero_point;  ///< quantized values [.., length]; scale and zero point [..] or [.., groups]
};

}  // namespace cermet
