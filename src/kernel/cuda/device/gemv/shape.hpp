// How GEMVs divide a weight among warps and stages, for both halves.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::gemv {

/// A warp reads this many bytes of a row at once: 16 a lane.
inline constexpr int piece_bytes = 512;
/// The same of a compact row (compact.cuh), and the elements of such a piece: 8 a lane, in 8 bytes and a half of 8.
inline constexpr int compact_piece_bytes = 384, compact_piece_elements = 256;
/// Rows whose sums are finished together.
inline constexpr int batch = 16;
/// Elements that share a scale.
inline constexpr int scale_block = 128;

constexpr int up(int value, int divisor) { return (value + divisor - 1) / divisor; }
constexpr int power_of_two_below(int value) {
  int power = 1;
  while (power * 2 <= value) power *= 2;
  return power;
}

/// One row of x at a time: `along` warps divide a row of the weight, each keeps its part of x in registers, and `side`
/// sets of such warps take rows in turn.
struct RowShape {
  int row_bytes;           ///< of the weight
  int piece;               ///< bytes of a row that a warp reads at once
  int pieces, held;        ///< of a row; of those, what a warp takes
  int along, side;         ///< warps
  int chunk, chunks;       ///< bytes of a row in one stage (all of it where chunks is 1)
  int stage_rows, stages;  ///< stages 0: weights go from memory to registers
  int sums;  ///< of a result: one of each weight, and that of the weight's quantized values where the epilogue reads it
  int slots;  ///< values of a row that are added (or, for block scales of int8, scaled and added in order) when it is
              ///< finished
  int warps;  ///< that multiply; with stages one more feeds them

  constexpr int threads() const { return 32 * (warps + (stages > 0 ? 1 : 0)); }
  constexpr int stage_bytes() const { return up(stage_rows * chunk, 128) * 128; }
  constexpr int ring_bytes() const { return stages * stage_bytes(); }
  constexpr int partial_bytes() const { return 2 * sums * batch * slots * 4; }
  static constexpr int scratch_bytes = 256;
  constexpr int shared_bytes() const {
    return ring_bytes() + up(partial_bytes(), 16) * 16 + scratch_bytes + 16 * stages;
  }
};

/// Largest reduction, in bytes of weight and elements, that a row of x in registers allows.
inline constexpr int widest_row = 114688, longest_row = 57344;

/// Bytes of stages with which two blocks share an SM.
inline constexpr int usual_ring_bytes = 98304;
/// Warps that multiply.
constexpr int usual_warps(int k) { return k > 16384 ? 16 : 8; }

/// `stream`: through stages in shared memory, about `budget` bytes of them. `ordered_blocks`: block scales whose sums
/// are added in order. `warps`: that multiply; 0: as usual. `compact`: rows of 12 bits an element.
constexpr RowShape row_shape(int k, int element_bytes, bool stream, bool ordered_blocks, int sums,
                             int budget = usual_ring_bytes, int warps = 0, bool compact = false) {
  RowShape s{};
  s.row_bytes = compact ? k / compact_piece_elements * compact_piece_bytes : k * element_bytes;
  s.piece = compact ? compact_piece_bytes : piece_bytes;
  s.sums = sums;
  s.pieces = s.row_bytes == 0 ? 1 : up(s.row_bytes, s.piece);
  s.warps = warps > 0 ? warps : usual_warps(k);
  s.along = power_of_two_below(s.pieces < s.warps ? s.pieces : s.warps);
  s.side = s.warps / s.along;
  s.held = up(s.pieces, s.along);
  const int unit = s.piece * s.along, stage = budget / 3;
  s.chunk = s.row_bytes;
  s.chunks = 1;
  if (s.row_bytes > stage) {
    s.chunk = stage / unit * unit;
    s.chunks = up(s.row_bytes, s.chunk);
  }
  s.stage_rows = 1;
  if (s.chunks == 1) {
    const int most = stream ? stage / (s.row_bytes > 16 ? s.row_bytes : 16) : 8 / s.held * s.side;
    s.stage_rows = power_of_two_below(most < s.side ? s.side : most > batch ? batch : most);
  }
  s.stages = stream ? 3 : 0;
  s.slots = ordered_blocks ? up(k, scale_block) : s.along;
  return s;
}

/// Blocks up to which share_begin() is exact.
inline constexpr int most_shares = 1600;
constexpr uint32_t inverse_of_shares(int shares) {
  return shares == 1 ? 0 : static_cast<uint32_t>((int64_t{1} << 32) / shares + 1);
}
/// floor(count * item / shares) with count = share * shares + rest, without a division: blocks compute it before they
/// ask for weights.
constexpr int64_t share_begin(int64_t share, int rest, uint32_t inverse, uint32_t item) {
  return share * item + static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(rest) * item) * inverse >> 32);
}

/// How pairs lie in stages of `rows` rows: the first columns of some pairs, then their second ones; where a stage is
/// one row, each pair takes two.
struct PairStages {
  int rows;
  constexpr int pairs() const { return rows == 1 ? 1 : rows / 2; }
  /// Rows that `count` pairs take, in whole stages.
  constexpr int rows_of(int count) const { return (count + pairs() - 1) / pairs() * 2 * pairs(); }
  /// The pair in a row, and which of its columns.
  constexpr int pair_of(int row) const { return row / (2 * pairs()) * pairs() + row % pairs(); }
  constexpr int second_of(int row) const { return row / pairs() % 2; }
  /// The row of the first column of a pair; the second one is `pairs()` later.
  constexpr int row_of(int pair) const { return pair / pairs() * 2 * pairs() + pair % pairs(); }
};

}  // namespace cermet::gemv
