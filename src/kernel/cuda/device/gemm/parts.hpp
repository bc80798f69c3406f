// Parameters of the task that splits float32 rows into three bfloat16 matrices.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::gemm {

struct PartsParams {
  const void* x;          ///< [rows, columns] float32, 16-byte aligned rows
  void* parts;            ///< [3, rows, columns] bfloat16
  int64_t x_stride;       ///< elements
  int32_t rows, columns;  ///< columns a multiple of 8
};

/// Elements of a work item.
inline constexpr int parts_item = 2048;

}  // namespace cermet::gemm
