// Attention over bf16 with the AVX-512 pair dot product instruction (vdpbf16ps), which Highway's AVX-512 target does
// not have: products of queries with keys, both bf16 as they are, summed in float32.
#pragma once

#include "kernel/cpu/attention/tile_rows.hpp"

namespace cermet::cpu {

inline constexpr int few_block = 4;  ///< most rows of a call of these

/// scores[r][j] = keys.factor[j] * query[r] . key j, for `count` keys, rounded up to a multiple of 4. Rows of queries
/// are dense, those of scores key_tile apart. Prefetches the rows `ahead`, if given.
using ScoreFew = void (*)(const std::byte* queries, const TileRows& keys, std::int64_t count, std::int64_t length,
                          const TileRows* ahead, float* scores);
/// output[r] += the sum over `count` keys of weights[r][j] * value j.
using AddFew = void (*)(const float* weights, const TileRows& values, std::int64_t count, std::int64_t length,
                        const TileRows* ahead, float* output);

/// Elements of rows that ScoreFew of pairs takes.
inline constexpr std::int64_t few_pairs_multiple = 32;

struct PairAttention {
  ScoreFew score_few[few_block];  ///< of 1 to few_block rows of bf16
  /// scores[j][row] = keys.factor[j] * query[row] . key j, for queries [length / 2][rows][2], an even length, and
  /// `count` keys, rounded up to a multiple of 2 within the tile.
  void (*score_tile)(const std::byte* queries, std::int64_t rows, const TileRows& keys, std::int64_t count,
                     std::int64_t length, const TileRows* ahead, float* scores);
  /// output[d][row] += the sum over `count` keys of weights[j][row] * value j [d], float32 but for the values; an even
  /// length.
  void (*add_values)(const float* weights, std::int64_t rows, const TileRows& values, std::int64_t count,
                     std::int64_t length, const TileRows* ahead, float* output);
  /// No value is infinite or NaN.
  bool (*all_finite)(const TileRows& values, std::int64_t count, std::int64_t length);
};

/// Whether the keys of a task are multiplied in pairs, and whether its values are read as bf16.
inline bool scores_in_pairs(const AttentionShape& shape, const AttentionTask& task) {
  return shape.pairs && (shape.k_dtype == DType::bf16 || shape.k_to_bf16) && task.k.element_step == 0 &&
         shape.head_size % 2 == 0;
}
inline bool values_in_pairs(const AttentionShape& shape, const AttentionTask& task) {
  return shape.pairs && (shape.v_dtype == DType::bf16 || shape.v_to_bf16) && task.v.element_step == 0 &&
         shape.value_size % 2 == 0;
}

/// Keys or values of a task as tiles of bf16: where they are, or widened from 8 bits.
class PairStream {
 public:
  /// `widen` is null for bf16.
  PairStream(const KeyRows& rows, RunConverter widen, std::int64_t length, float factor, float* tile)
      : stream_(rows, factor), widen_(widen), length_(length), tile_(reinterpret_cast<std::byte*>(tile)) {}

  void begin(std::int64_t begin, std::int64_t end) { stream_.begin(begin, end); }
  /// The next tile, of `count` rows; the one that follows it has rows `end` .. `next_end`.
  RowStream::Step take(std::int64_t count, std::int64_t end, std::int64_t next_end) {
    const RowStream::Step step = stream_.take(end, next_end);
    if (!widen_) return step;
    widened_.find_dense(tile_, 2 * length_, count, 1.0f);
    std::copy_n(step.now.factor, key_tile, widened_.factor);
    for (std::int64_t j = 0; j < count; ++j) widen_(step.now.row[j], tile_ + 2 * j * length_, length_);
    return {widened_, step.ahead};
  }

 private:
  RowStream stream_;
  RunConverter widen_;
  std::int64_t length_;
  std::byte* tile_;
  TileRows widened_;
};

/// Null where the machine has no such instruction, or a slow one. Found when kernels are bound.
const PairAttention* pair_attention();
/// The same for queries of a type; null for others than bf16.
inline const PairAttention* pairs_for(DType queries) { return queries == DType::bf16 ? pair_attention() : nullptr; }

}  // namespace cermet::cpu
