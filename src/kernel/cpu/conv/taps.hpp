// Products of pixels with packed panels of a convolution's weight: the rows are read where they lie, so that nothing is
// gathered.
#pragma once

#include <cstdint>

#include "kernel/cpu/gemm/prefetch.hpp"

namespace cermet::cpu {

/// Elements of x that are neighbours in memory and in the reduction: one tap's channels, or those of a row of taps.
struct TapRun {
  std::int64_t offset;  ///< from the first element of a window, in elements
  std::int64_t length;
};

/// Neighbouring windows: row r reads its runs from `first` + r * step on.
struct TapRows {
  const float* first;
  std::int64_t step;  ///< elements from one window to the next
  const TapRun* runs;
  std::int64_t run_count;
  std::int64_t columns = 32;    ///< of the panel that are wanted
  bool begins = false;          ///< sums start at 0 instead of what the tile holds
  Ahead ahead = Ahead::none();  ///< what to ask for at each element
};

/// What follows a whole sum where it is stored: y = clamp(sum + bias + residual).
struct TapStore {
  float* y;
  std::int64_t y_step;    ///< elements from one row to the next
  const float* bias;      ///< of 32 columns; null for none
  const float* residual;  ///< as y; null for none
  std::int64_t residual_step;
  float low, high;  ///< infinite where nothing is clamped
};

/// tile[r][c] += sum over the elements of runs of x[r] * panel[c]; panel: [elements][32], tile: [rows][32]. With
/// `store` the tile is read only, and `store` takes the sums.
using MultiplyTaps = void (*)(const TapRows& rows, const float* panel, float* tile, const TapStore* store);

/// Products for the active instruction set: element r - 1 takes blocks of r rows.
struct TapProducts {
  const MultiplyTaps* multiply;
  int block_rows;  ///< most rows of a block
  /// Stores the first columns of a tile [rows][32].
  void (*store)(const float* tile, int rows, const TapStore& to, std::int64_t columns);
};
TapProducts tap_products();

/// Most rows of a block on any instruction set.
inline constexpr int most_tap_rows = 14;

}  // namespace cermet::cpu
