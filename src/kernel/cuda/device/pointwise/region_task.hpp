// Parameters of a region of elementwise operators.
#pragma once

#include "kernel/cuda/device/pointwise/tile.hpp"

namespace cermet::pointwise {

inline constexpr int most_operands = 12;

struct RegionParams {
  TileShape shape;
  TileOperand operands[most_operands];  ///< what the region reads, then its results
};

}  // namespace cermet::pointwise
