// Parameters of the elementwise operators.
#pragma once

#include "kernel/cuda/device/pointwise/tile.hpp"

namespace cermet::pointwise {

struct Params {
  TileShape shape;
  TileOperand a, b, y;
  float parameters[2];
  double wide_parameters[2];  ///< the same, for f64
};

}  // namespace cermet::pointwise
