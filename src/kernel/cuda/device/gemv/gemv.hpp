// GEMV: configuration, shape in shared memory and parameters, for both halves. The kernel: gemv.cuh.
#pragma once

#include "kernel/cuda/device/integers.hpp"
#include "kernel/cuda/device/tile/epilogue.hpp"

namespace cermet::gemv {

/// A warp reads this many bytes of a row of the weight at once: 16 a lane.
inline constexpr int piece_bytes = 512;
/// The same of a compact row (row.cuh), and the elements of such a piece: 8 a lane, in 8 bytes and a half of 8.
inline constexpr int compact_piece_bytes = 384, compact_piece_elements = 256;
/// Results that are finished together.
inline constexpr int batch = 16;
/// Elements that share a scale.
inline constexpr int scale_block = 128;
/// Largest reduction, in bytes of weight and elements, that a row of x in registers allows.
inline constexpr int widest_row = 114688, longest_row = 57344;
/// Bytes of stages with which two blocks share an SM.
inline constexpr int usual_ring_bytes = 98304;

/// What is done to a row of x on its way into registers. Every block does it for itself; the first one stores `sum` and
/// `normed`.
struct Prologue {
  bool norm = false;  ///< rms_norm(x + delta) * (norm_weight + norm_offset)
  DType delta = {}, weight = {}, sum = {};
  bool round_sum = false;      ///< the sum is rounded to its type before it is normalized
  DType rounded = {};          ///< what the normalized row is rounded to before it is multiplied; f32: not
  bool stores_normed = false;  ///< the normalized row is a result, of type `normed`
  DType normed = {};           ///< of the result
  bool quantize = false;       ///< with one scale for the row, to
  DType quantized = {};        ///< int8 where the weight is int8, otherwise fp8
  bool wide = false;           ///< the scale is absmax / 127.5
  bool aligned = false;  ///< all of these rows start at multiples of 16 bytes, and K is a multiple of what a lane has
                         ///< of each piece

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("norm", norm), visit("delta", delta), visit("weight", weight), visit("sum", sum);
    visit("round_sum", round_sum), visit("rounded", rounded), visit("stores_normed", stores_normed);
    visit("normed", normed), visit("quantize", quantize), visit("quantized", quantized), visit("wide", wide);
    visit("aligned", aligned);
  }
};

struct Config {
  int k = 0;  ///< reduction length
  DType x = {}, w = {};
  bool blocked = false;               ///< scales of 128 reduction steps
  bool dual = false;                  ///< a second weight
  bool compact = false;               ///< rows of the weight have 12 bits an element: row.cuh
  bool stream = false;                ///< weights come through stages in shared memory (sm_90 on)
  int ring_bytes = usual_ring_bytes;  ///< of those stages, about
  int warps = 0;                      ///< that multiply; 0: as many as is usual for the length
  int in_flight = 0;                  ///< stages at most whose bytes are on their way; 0: all
  bool delays_next = false;           ///< the next launch starts when those before this one have ended
  bool dry_run = false;  ///< a block goes through its first stage while earlier launches run, so that its code is in
                         ///< the instruction cache when they end
  Prologue prologue = {};

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("k", k), visit("x", x), visit("w", w), visit("blocked", blocked), visit("dual", dual);
    visit("compact", compact), visit("stream", stream), visit("ring_bytes", ring_bytes), visit("warps", warps);
    visit("in_flight", in_flight), visit("delays_next", delays_next), visit("dry_run", dry_run);
    visit("prologue", prologue);
  }
};

constexpr int up(int value, int divisor) { return (value + divisor - 1) / divisor; }
constexpr int power_of_two_below(int value) {
  int power = 1;
  while (power * 2 <= value) power *= 2;
  return power;
}

/// How rows of the weight are divided among warps and stages: `split_k` warps divide a row, each keeps its part of x in
/// registers, and `sets` of such warps take rows in turn.
struct Shape {
  int row_bytes;            ///< of the weight
  int piece;                ///< bytes of a row that a warp reads at once
  int pieces, warp_pieces;  ///< of a row; of those, what a warp has
  int split_k, sets;
  int chunk, chunks;       ///< bytes of a row in one stage (all of it where chunks is 1)
  int stage_rows, stages;  ///< stages 0: weights go from memory to registers
  int sums;  ///< of a result: one of each weight, and that of the weight's quantized values where the epilogue reads it
  int partials;  ///< of a sum, which are added (or, for block scales of int8, scaled and added in order) at its end
  int warps;     ///< that multiply: consumers; with stages one more produces

  constexpr int threads() const { return 32 * (warps + (stages > 0 ? 1 : 0)); }
  constexpr int stage_bytes() const { return up(stage_rows * chunk, 128) * 128; }
  constexpr int ring_bytes() const { return stages * stage_bytes(); }
  constexpr int partial_bytes() const { return 2 * sums * batch * partials * 4; }
  static constexpr int scratch_bytes = 256;
  constexpr int shared_bytes() const {
    return ring_bytes() + up(partial_bytes(), 16) * 16 + scratch_bytes + 16 * stages;
  }
};

/// Warps that multiply.
constexpr int usual_warps(int k) { return k > 16384 ? 16 : 8; }

/// `ordered_blocks`: block scales whose sums are added in order.
constexpr Shape shape_of(const Config& c, int element_bytes, bool ordered_blocks, int sums) {
  Shape s{};
  s.row_bytes = c.compact ? c.k / compact_piece_elements * compact_piece_bytes : c.k * element_bytes;
  s.piece = c.compact ? compact_piece_bytes : piece_bytes;
  s.sums = sums;
  s.pieces = s.row_bytes == 0 ? 1 : up(s.row_bytes, s.piece);
  s.warps = c.warps > 0 ? c.warps : usual_warps(c.k);
  s.split_k = power_of_two_below(s.pieces < s.warps ? s.pieces : s.warps);
  s.sets = s.warps / s.split_k;
  s.warp_pieces = up(s.pieces, s.split_k);
  const int unit = s.piece * s.split_k, stage = c.ring_bytes / 3;
  s.chunk = s.row_bytes;
  s.chunks = 1;
  if (s.row_bytes > stage) {
    s.chunk = stage / unit * unit;
    s.chunks = up(s.row_bytes, s.chunk);
  }
  s.stage_rows = 1;
  if (s.chunks == 1) {
    const int most = c.stream ? stage / (s.row_bytes > 16 ? s.row_bytes : 16) : 8 / s.warp_pieces * s.sets;
    s.stage_rows = power_of_two_below(most < s.sets ? s.sets : most > batch ? batch : most);
  }
  s.stages = c.stream ? 3 : 0;
  s.partials = ordered_blocks ? up(c.k, scale_block) : s.split_k;
  return s;
}

/// Blocks up to which share_begin() is exact.
inline constexpr int most_shares = 1600;
constexpr uint32_t inverse_of_shares(int shares) {
  return shares == 1 ? 0 : static_cast<uint32_t>((int64_t{1} << 32) / shares + 1);
}
/// floor(count * item / shares) with count = share * shares + remainder, without a division: blocks compute it before
/// they load weights.
constexpr int64_t share_begin(int64_t share, int remainder, uint32_t inverse, uint32_t item) {
  return share * item +
         static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(remainder) * item) * inverse >> 32);
}

/// y[r, n] = epilogue(sum over k of x[r, k] * w[n, k]). Strides count elements; an operand that is not given is null,
/// and its stride 0 where one value serves all.
struct Params {
  const void* x;         ///< [rows, K]
  const void* w;         ///< [columns, K], or [groups, columns, K]
  const void* w_up;      ///< of the second product
  void* y;               ///< [rows, columns]
  void* y_second;        ///< the same of a second result, where the epilogue gives two
  const float* x_scale;  ///< of blocks of the reduction: [rows, blocks]
  const float* w_scale;  ///< [columns / 128, blocks]; for groups with their number as the first dimension
  const void* offsets;   ///< [groups + 1]: first row of each group
  int64_t x_stride, w_stride, w_group_stride, w_up_stride, y_stride, y_second_stride;
  int64_t x_scale_stride;                        ///< from row to row
  int64_t w_scale_stride, w_scale_group_stride;  ///< from w_scale_columns columns and from group to group
  int32_t x_scale_block, w_scale_block;          ///< from 128 reduction steps to the next
  int32_t w_scale_columns;
  int32_t rows, columns, groups;
  int32_t shares;            ///< blocks that share the columns of all rows
  int32_t share, remainder;  ///< of their number for each block
  uint32_t inverse;          ///< of shares, as a fraction of 2^32: see share_begin()
  int32_t constant;  ///< whether no task writes the weights, so that they may be fetched before earlier tasks end

  /// Of the prologue.
  const void* delta;        ///< [rows, K], added to x
  const void* norm_weight;  ///< [K]
  void* sum;                ///< [rows, K]: x + delta, for later operators
  void* normed;             ///< [rows, K]: what is multiplied, for later operators
  int64_t delta_stride, sum_stride, normed_stride;
  float epsilon, norm_offset;
  int32_t aligned;  ///< whether x and all of these rows begin at multiples of 16 bytes

  /// Of a mixture's rows: routed.cuh, combine.cuh.
  const void* ids;            ///< [tokens, choices]: experts, where the rows are sorted here
  int32_t* sorted_offsets;    ///< [groups + 1]: what sorting gives beside the rows
  int32_t* row_of;            ///< [tokens, choices]
  const void* row_of_choice;  ///< [choices]: which rows are added, and with what weights
  const float* weights;       ///< [choices]
  int64_t ids_stride, row_of_stride;
  int32_t choices;
  /// Of compact rows: what sums of a column are multiplied by. Strides of the weights count two bytes, as those of bf16
  /// do.
  const float *w_factors, *w_up_factors;
  int32_t published;  ///< whether the launch before has published the choices' rows and offsets, so that they may be
                      ///< read before it ends

  epilogue::Operand extra[epilogue::most_extras];  ///< last, so that parameters in use are neighbours

  /// Divides `count` results among blocks.
  constexpr void share_out(int64_t count, int64_t blocks) {
    shares = static_cast<int32_t>(blocks < most_shares ? blocks : most_shares);
    share = static_cast<int32_t>(count / shares);
    remainder = static_cast<int32_t>(count % shares);
    inverse = inverse_of_shares(shares);
  }
};

}  // namespace cermet::gemv
