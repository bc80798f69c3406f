// Scratch of one attention task: its rows (queries), one tile of keys, and the running softmax. All float32 unless said
// otherwise.
#pragma once

#include "base/checked.hpp"
#include "kernel/cpu/attention/tile_attention.hpp"

namespace cermet::cpu {

inline constexpr std::int64_t key_tile = 64;  ///< keys whose scores are computed together
inline constexpr std::int64_t few_rows = 8;   ///< rows of one query that are computed with elements in the lanes

/// Rows of a task that is computed with elements in the lanes; 0 for others. One query sees all keys of its range, so
/// no key is masked by its place.
inline int few_rows_of(const AttentionShape& shape, const AttentionTask& task) {
  const bool plain =
      !task.alibi && !task.bias.data && !task.mask.data && task.k.element_step == 0 && task.v.element_step == 0;
  return plain && task.tokens == 1 && shape.group <= few_rows ? static_cast<int>(shape.group) : 0;
}

/// A query as float32.
inline void load_query(const AttentionShape& shape, const std::byte* q, float* row) {
  if (shape.q_element_step == 0) return shape.q_to_float(q, reinterpret_cast<std::byte*>(row), shape.head_size);
  for (std::int64_t d = 0; d < shape.head_size; ++d)
    shape.q_to_float(q + d * shape.q_element_step, reinterpret_cast<std::byte*>(row + d), 1);
}

struct RowState {
  static constexpr std::int64_t step =
      16;             ///< rows come in multiples of this: a multiple of the lanes of every instruction set
  std::int64_t rows;  ///< padded
  std::int32_t *first, *last, *position;        ///< [rows]: keys first <= j < last are seen; place of the query
  std::int32_t* bias_offset;                    ///< [rows]: elements from the bias of the first row
  std::int64_t last_first = 0, first_last = 0;  ///< a tile inside [last_first, first_last) is seen by every row
  float* slope;                                 ///< [rows]
  float *maximum, *sum, *output;                ///< [rows], [rows], [value_size][rows]
  float *query, *scores;                        ///< [head_size][rows], scaled; [key_tile][rows]
  float *keys, *values;                         ///< [key_tile][head_size], [key_tile][value_size]
  float* row;                                   ///< one vector of a query or an output
  float* few;                                   ///< [few_rows][head_size], [few_rows][value_size]

  static std::int64_t padded(std::int64_t rows) { return round_up(rows, step); }
  static std::int64_t floats(std::int64_t rows, std::int64_t head_size, std::int64_t value_size) {
    const std::int64_t p = padded(rows), vector = round_up(std::max(head_size, value_size), step);
    return p * (7 + value_size + head_size + key_tile) +
           key_tile * (round_up(head_size, step) + round_up(value_size, step)) + vector +
           few_rows * (head_size + value_size);
  }

  /// Places everything in `memory`, which holds floats(task_rows, ...) elements at least.
  RowState(float* memory, std::int64_t task_rows, const AttentionShape& shape) : rows(padded(task_rows)) {
    const auto take = [&](std::int64_t count) {
      float* taken = memory;
      memory += count;
      return taken;
    };
    first = reinterpret_cast<std::int32_t*>(take(rows));
    last = reinterpret_cast<std::int32_t*>(take(rows));
    position = reinterpret_cast<std::int32_t*>(take(rows));
    bias_offset = reinterpret_cast<std::int32_t*>(take(rows));
    slope = take(rows);
    maximum = take(rows);
    sum = take(rows);
    output = take(shape.value_size * rows);
    query = take(shape.head_size * rows);
    scores = take(key_tile * rows);
    keys = take(key_tile * round_up(shape.head_size, step));
    values = take(key_tile * round_up(shape.value_size, step));
    row = take(round_up(std::max(shape.head_size, shape.value_size), step));
    few = take(few_rows * (shape.head_size + shape.value_size));
  }

  /// Keeps maximum, sum and output in `memory` instead: (value_size + 2) * rows elements.
  void use_partial(float* memory) {
    maximum = memory;
    sum = memory + rows;
    output = memory + 2 * rows;
  }
};

}  // namespace cermet::cpu
