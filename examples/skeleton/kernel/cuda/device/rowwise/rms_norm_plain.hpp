// Skeleton of a CUDA kernel, shared half: what the host passes to the task. Copy to
// src/kernel/cuda/device/FAMILY/NAME.hpp. A Config, for what programs are compiled for, has its place here, too:
// kernel/cuda/device/reduce/cumsum_tiled.hpp has one with an element type.
#pragma once

#include "kernel/cuda/device/rowwise/row_params.hpp"

namespace cermet::rms_norm_plain {

inline constexpr int threads = 256, rows_per_item = threads / 32;

/// Passed by value: plain data of fixed-width types.
struct Params {
  RowOperand x, y;
  RowDims dims;
  int64_t rows, length;
  float eps;
};

}  // namespace cermet::rms_norm_plain
