// What a launch of lstm, gru or rnn needs to know: attributes, read at binding, and where things lie in the workspace.
#pragma once

#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/kernel.hpp"
#include "op/recurrent.hpp"

namespace cermet::cpu {

struct RecurrentBinding {
  OpKind op;
  DType dtype;
  int gates, functions;  ///< of one direction
  std::vector<RecurrentActivation> activations;
  bool backwards[2];
  float clip;
  bool coupled = false, reset_after = false;
  bool packed_w, packed_r;  ///< whether the weights arrive as panels

  explicit RecurrentBinding(const Problem& p);
};

/// Offsets in the workspace, in bytes. Columns are the rows of w and r: gates of `hidden` each, padded to whole panels.
struct RecurrentPlan {
  RecurrentSizes n;
  std::int64_t columns, panels, padded;
  std::int64_t w_slice, r_slice;  ///< bytes of the panels of one direction
  std::int64_t packed_w, packed_r, biases, products, scratch, scratch_bytes, bytes;

  /// Scratch is that of each of `threads` threads.
  RecurrentPlan(const RecurrentBinding& binding, const RecurrentSizes& sizes, int threads);
};

/// Most rows that a product takes at a time on any instruction set.
inline constexpr std::int64_t recurrent_rows = 14;

}  // namespace cermet::cpu
