// How the rows of a token's experts are divided among warps and stages, for both halves.
#pragma once

#include "kernel/cuda/device/gemv/shape.hpp"

namespace cermet::gemv {

/// Most experts of a token whose rows are added as they are computed: a warp for each.
inline constexpr int most_choices = 8;

/// Each expert has `along` warps of its own, which divide its rows of the weight; a stage has `rows` of each expert.
struct CombineShape {
  int choices;
  int row_bytes, pieces, held, along;
  int rows, stages;

  constexpr int warps() const { return choices * along; }
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
  s.along = taken > most_choices ? 1 : most_choices / taken;
  s.held = up(s.pieces, s.along);
  const int most = budget / 3 / (s.row_bytes * choices > 16 ? s.row_bytes * choices : 16);
  s.rows = power_of_two_below(most < 1 ? 1 : most > batch ? batch : most);
  s.stages = 3;
  return s;
}

}  // namespace cermet::gemv
