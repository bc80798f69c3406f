// Parameters of matmul over f64 and integers.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::plain {

/// A work item is a tile of the result: a thread for each place.
inline constexpr int tile_columns = 32, tile_rows = 8, threads = tile_columns * tile_rows;

struct Params {
  const void *a, *b;
  void* y;
  int64_t rows, columns, length;
  int64_t a_row, a_step, b_column, b_step, y_row;  ///< strides in elements; steps along the reduction
  int64_t tiles_down, tiles_across;
  Axes<3> batches;  ///< strides of a, b and y
};

}  // namespace cermet::plain
