// Parameters of the embedding task.
#pragma once

#include "kernel/cuda/device/movement/axes.hpp"

namespace cermet::embedding {

struct Params {
  const void* ids;
  const void* table;
  void* out;
  int64_t vocabulary, table_stride;  ///< stride in elements
  uint32_t wide_ids;
  uint32_t vectors;  ///< rows of table and result start at multiples of 16 bytes
  Axes<2> tokens;    ///< strides of ids and of the rows of the result, in elements
};

}  // namespace cermet::embedding
