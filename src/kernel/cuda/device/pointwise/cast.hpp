// Parameters of cast.
#pragma once

#include "kernel/cuda/device/pointwise/tile.hpp"

namespace cermet::cast {

struct Params {
  TileShape shape;
  TileOperand x, y;
};

}  // namespace cermet::cast
