// The second product of a mixture's experts for one token (combine.cuh): configuration and shape, for both halves.
#pragma once

#include "kernel/cuda/device/gemv/gemv.hpp"

namespace cermet::gemv {

/// Most experts of a token whose rows are added as they are computed: a warp for each.
inline constexpr int most_choices = 8;

struct CombineConfig {
  int k = 0;  ///< reduction length
  DType x = {}, w = {};
  DType offsets = {}, ids = {};
  int choices = 0;    ///< experts of the token
  bool tail = false;  ///< rows from the last group's end on have no weight, and are 0
  int ring_bytes = usual_ring_bytes;
  Prologue prologue = {};  ///< may quantize

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("k", k), visit("x", x), visit("w", w), visit("offsets", offsets), visit("ids", ids);
    visit("choices", choices), visit("tail", tail), visit("ring_bytes", ring_bytes), visit("prologue", prologue);
  }
};

/// Each expert has `split_k` warps of its own, which divide its rows of the weight; a stage has `rows` of each expert.
struct CombineShape {
  int choices;
  int row_bytes, pieces, warp_pieces, split_k;
  int rows, stages;

  constexpr int warps() const { return choices * split_k; }
  constexpr int threads() const { return 32 * (warps() + 1); }
  constexpr int stage_bytes() const { return up(rows * row_bytes * choices, 128) * 128; }
  constexpr int ring_bytes() const { return stages * stage_bytes(); }
  static constexpr int partial_bytes = 2 * batch * most_choices * 4;
  static constexpr int scratch_bytes = 256;
  constexpr int shared_bytes() const { return ring_bytes() + partial_bytes + scratch_bytes + 16 * stages; }
  /// Whether a row of each expert fits into a stage.
  constexpr bool fits(int budget) const { return choices <= most_choices && row_bytes * choices <= budget / 3; }
};

constexpr CombineShape combine_shape(int k, int element_bytes, int choices, int budget) {
  CombineShape s{};
  s.choices = choices;
  s.row_bytes = k * element_bytes;
  s.pieces = s.row_bytes == 0 ? 1 : up(s.row_bytes, piece_bytes);
  int taken = 1;
  while (taken < choices) taken *= 2;
  s.split_k = taken > most_choices ? 1 : most_choices / taken;
  s.warp_pieces = up(s.pieces, s.split_k);
  const int most = budget / 3 / (s.row_bytes * choices > 16 ? s.row_bytes * choices : 16);
  s.rows = power_of_two_below(most < 1 ? 1 : most > batch ? batch : most);
  s.stages = 3;
  return s;
}

}  // namespace cermet::gemv
