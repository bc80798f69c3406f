// The attention family: a tile of queries against the keys of one sequence and key-value head, with float32 online
// softmax (Milakov and Gimelshein 2018; tiling after FlashAttention, Dao et al. 2022; key ranges in parallel after
// Flash-Decoding, 2023). Queries are in the lanes of a vector, so that maxima, sums and masks need no cross-lane
// operations, and keys and values are used in their memory layout.
#pragma once

#include <algorithm>

#include "base/checked.hpp"
#include "base/function_ref.hpp"
#include "base/thread_pool.hpp"
#include "kernel/cpu/convert.hpp"
#include "op/attention.hpp"

namespace cermet::cpu {

struct PairAttention;

/// Keys or values of one sequence and head: `length` elements each, in pages or in one run.
struct KeyRows {
  const std::byte* data = nullptr;
  std::int64_t element_bytes = 1;
  std::int64_t page_step = 0, row_step = 0;  ///< bytes
  std::int64_t element_step =
      0;  ///< bytes between the elements of a row where they are not side by side but the rows are; else 0
  const std::int32_t* table = nullptr;  ///< page of every `block` tokens; null: token j is row j of page 0
  std::int64_t block = 1;
  const float* scale = nullptr;                          ///< of quantized values; null for none
  std::int64_t scale_page_step = 0, scale_row_step = 0;  ///< elements; both 0 where the head has one scale
};

/// What is added to scores, or says which keys are seen. Steps are in bytes.
struct ScoreOperand {
  const std::byte* data = nullptr;  ///< for the first token and head, and key 0; null for none
  std::int64_t token_step = 0, head_step = 0, key_step = 0;
};

/// Consecutive queries of one sequence with all heads that share a key-value head.
struct AttentionTask {
  const std::byte* q = nullptr;  ///< first token and head
  std::byte* o = nullptr;
  float* lse = nullptr;                            ///< first token and head; null for none
  const float *sinks = nullptr, *alibi = nullptr;  ///< of the first head; null for none
  std::int64_t tokens = 0, position = 0;  ///< number of queries; place of the first among the keys, may be negative
  std::int64_t keys = 0;                  ///< 0 .. keys - 1 exist
  KeyRows k = {}, v = {};
  ScoreOperand bias = {}, mask = {};
};

/// Parameters shared by all tasks of a launch. Steps are in bytes, that of lse in elements.
struct AttentionShape {
  std::int64_t head_size, value_size, group;
  std::int64_t q_token_step, q_head_step, o_token_step, o_head_step, lse_head_step = 0;
  RunConverter q_to_float, k_to_float, v_to_float, o_from_float;
  DType k_dtype, v_dtype;
  const PairAttention* pairs = nullptr;                   ///< for queries of bf16, where the machine has such products
  RunConverter k_to_bf16 = nullptr, v_to_bf16 = nullptr;  ///< of 8-bit caches
  std::int64_t q_element_step = 0;  ///< bytes between elements of a query where they are not side by side; else 0
  RunConverter bias_to_float = nullptr;
  std::int64_t bias_bytes = 0;  ///< of an element
  float masked_score = 0;       ///< of keys where the mask is false
  bool zero_rows = false;       ///< a row whose scores are all -inf gives zeros
  bool floats_by_token =
      false;  ///< queries and outputs are float32, elements side by side, and a row of a task is a token
};

/// Maximum number of query tokens of one task, so that about 64 rows share each key that is loaded.
std::int64_t attention_tile_tokens(std::int64_t group);

/// The queries of a ragged batch in tiles of at most attention_tile_tokens.
class QueryTiles {
 public:
  /// `ends` has room for one number per sequence.
  QueryTiles(std::int64_t* ends, std::int64_t sequences, std::int64_t tile_tokens)
      : ends_(ends), sequences_(sequences), tile_tokens_(tile_tokens) {}
  /// Bytes that `ends` takes, rounded up to whole cache lines.
  static std::int64_t bytes(std::int64_t sequences) { return round_up(sequences * 8, 64); }
  /// Number of queries of sequence b; for all b in order.
  void set(std::int64_t b, std::int64_t queries) { ends_[b] = first_of(b) + div_up(queries, tile_tokens_); }
  std::int64_t count() const { return first_of(sequences_); }

  struct Tile {
    std::int64_t sequence, first;  ///< first query within the sequence
  };
  Tile operator[](std::int64_t tile) const {
    const std::int64_t b = std::upper_bound(ends_, ends_ + sequences_, tile) - ends_;
    return {b, (tile - first_of(b)) * tile_tokens_};
  }

 private:
  std::int64_t first_of(std::int64_t b) const { return b > 0 ? ends_[b - 1] : 0; }
  std::int64_t* ends_;  ///< number of tiles up to and with each sequence
  std::int64_t sequences_, tile_tokens_;
};

/// Converter of a cache's element type to float32, without scales.
RunConverter key_converter(DType dtype);
/// The same to bf16, of 8-bit types; null for others.
RunConverter bf16_converter(DType dtype);

/// Workspace of run_attention for tasks of at most `tokens` queries.
std::int64_t attention_workspace(std::int64_t tokens, std::int64_t group, std::int64_t head_size,
                                 std::int64_t value_size, int threads);

/// Lengths of which the longest may be most of a batch's work.
class UnlikeLengths {
 public:
  void add(std::int64_t keys) { least_ = std::min(least_, keys), most_ = std::max(most_, keys); }
  bool found() const { return most_ >= 512 && most_ >= 2 * least_; }

 private:
  std::int64_t least_ = std::int64_t{1} << 62, most_ = 0;
};

/// Runs all tasks on the pool, whose threads claim them one by one. Few tasks with many keys, and long ones among
/// others (`unlike`), are split by key range and merged in order; the result does not depend on the number of threads.
void run_attention(const AttentionSettings& settings, const AttentionShape& shape, std::int64_t tasks,
                   FunctionRef<AttentionTask(std::int64_t)> task, std::byte* workspace, ThreadPool& pool, bool unlike);

}  // namespace cermet::cpu
