// Configuration and parameters of the moe_unpermute task.
#pragma once

#include "kernel/cuda/device/dtype.hpp"

namespace cermet::unpermute {

struct Config {
  DType rows, residual, out;
  int k;
  bool has_residual;
  int threads;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("rows", rows), visit("residual", residual), visit("out", out), visit("k", k);
    visit("has_residual", has_residual), visit("threads", threads);
  }
};

struct Params {
  const void* rows;
  const void* row_of;
  const float* weights;
  const void* residual;
  void* y;
  int64_t row_count, columns, blocks;  ///< rows and columns of `rows`; blocks that share a token's columns
  int64_t rows_stride, row_of_stride, weights_stride, residual_stride, y_stride;
  uint32_t wide_ids;
  uint32_t vectors;  ///< columns come in whole vectors, and rows start at multiples of their size
};

}  // namespace cermet::unpermute
