// Parameters of gated activations.
#pragma once

#include "kernel/cuda/device/pointwise/tile.hpp"

namespace cermet::gated {

struct Params {
  TileShape shape;  ///< of the result
  RowOperand x;     ///< [.., 2 * length]
  TileOperand y;
  float alpha, limit, up_offset;  ///< of the clamped SwiGLU
};

}  // namespace cermet::gated
