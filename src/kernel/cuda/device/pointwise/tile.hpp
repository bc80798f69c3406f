// Where the work items of elementwise tasks lie: rows cut into tiles, short rows several to a block.
#pragma once

#include "kernel/cuda/device/rowwise/rows.hpp"

namespace cermet {

struct TileShape {
  RowDims dims;
  uint32_t rows;
  uint32_t tiles_per_row;
  uint32_t lanes_shift;  ///< 2^lanes_shift threads side by side in a row
  uint32_t aligned;      ///< not 0: vectors may move with one access
  int64_t length;        ///< elements of a row
};

/// An operand of an elementwise task: its rows, and whether one element stands for a whole row.
struct TileOperand {
  RowOperand rows;
  int64_t along;  ///< 1, or 0 where one element is repeated
};

}  // namespace cermet
