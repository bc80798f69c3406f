// Parameters of quantize and dequantize.
#pragma once

#include "kernel/cuda/device/pointwise/tile.hpp"

namespace cermet::quantize {

struct Params {
  TileShape shape;
  TileOperand x, scale, offset, zero_point, y;
  uint32_t group;  ///< columns that share a scale, where they are grouped
};

}  // namespace cermet::quantize
