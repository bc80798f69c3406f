// The GEMM of few rows and columns whose reduction the threads of a block share (simt_split_k.cuh) as host and device
// see it: its tiles, configuration and parameters.
#pragma once

#include "kernel/cuda/device/tile/epilogue.hpp"

namespace cermet::gemm {

/// y[m, n] = epilogue(sum over k of x[m, k] * w[n, k]); rows of x and w are aligned to four elements.
struct SimtSplitKParams {
  const void *x, *w;
  int64_t x_row, w_row;  ///< elements
  int32_t m;
  bool vectors;  ///< runs of results, and of what the epilogue reads, are aligned
  epilogue::ResultRows to;
  epilogue::Operand extra[epilogue::most_extras];
};

/// What a block computes, all of its threads together: each has sums of all of its results over a share of k, four
/// elements of a row at a time.
struct SimtSplitKTile {
  int rows, columns;  ///< powers of 2
  int w_bytes;        ///< of an element of the weight

  template <class Visit>
  CERMET_HOST_DEVICE constexpr void fields(Visit&& visit) const {
    visit("rows", rows), visit("columns", columns), visit("w_bytes", w_bytes);
  }

  static constexpr int threads = 256, warps = threads / 32, run = 4;
  static constexpr int stage = threads * run;  ///< elements of k that the block loads at a time

  CERMET_HOST_DEVICE constexpr int sums() const { return rows * columns; }
  /// Registers of a thread's share of a stage.
  CERMET_HOST_DEVICE constexpr int registers() const { return rows * run + columns * run * w_bytes / 4; }
  /// Stages that are on their way at a time: as many as registers hold beside the sums and addresses.
  CERMET_HOST_DEVICE constexpr int stages(int k) const {
    const int needed = (k + stage - 1) / stage, fit = (200 - sums()) / registers();
    return fit < 1 ? 1 : fit < needed ? fit : needed;
  }
  /// Neighbouring columns that a thread stores.
  CERMET_HOST_DEVICE constexpr int stored() const { return columns < 4 ? columns : 4; }
  /// The sums of all warps.
  CERMET_HOST_DEVICE constexpr int shared_bytes() const { return warps * sums() * 4; }
};

struct SimtSplitKConfig {
  DType x, w;
  int n, k;
  SimtSplitKTile tile;
  bool preload_w = false;  ///< no launch writes the weights: they are loaded before earlier launches have ended

  template <class Visit>
  CERMET_HOST_DEVICE constexpr void fields(Visit&& visit) const {
    visit("x", x), visit("w", w), visit("n", n), visit("k", k), visit("tile", tile), visit("preload_w", preload_w);
  }
};

}  // namespace cermet::gemm
