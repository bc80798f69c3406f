// Parameters of the uneven all_to_all.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::exchange {

inline constexpr int threads = 128;

struct Params {
  const void* x;
  void* y;
  const void* counts;  ///< [ranks, ranks]: rows from each rank (row) to each rank (column)
  int64_t ranks, rows;
  int64_t counts_strides[2];
  int64_t x_strides[2], y_strides[2];  ///< of ranks and rows, in words
  uint32_t wide_counts, word_bytes;
  Axes<2> row;  ///< words of a row, strides of x and y
};

}  // namespace cermet::exchange
