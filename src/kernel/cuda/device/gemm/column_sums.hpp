// Parameters of the task that adds up the quantized values of each row of a weight.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::gemm {

struct ColumnSumsParams {
  const int8_t* b;  ///< [n, k]
  int32_t* sums;    ///< [n]
  int64_t b_row;    ///< elements from row to row
  int32_t n, k;
};

/// Rows of a work item: a warp takes one.
inline constexpr int column_sums_item = 8;

}  // namespace cermet::gemm
