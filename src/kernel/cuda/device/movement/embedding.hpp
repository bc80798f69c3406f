// Parameters of the embedding task.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::embedding {

struct Params {
  const void* ids;
  const void* table;
  void* out;
  int64_t vocabulary, table_stride, out_stride;  ///< strides in elements
};

}  // namespace cermet::embedding
