// Configuration and parameters of the rope task.
#pragma once

#include "kernel/cuda/device/dtype.hpp"

namespace cermet::rope {

struct Config {
  int head_size, half, q_heads, k_heads;  ///< half: pairs of a head
  DType x, y, table, position;
  bool neox, inverse, scaled;  ///< scaled: results are multiplied with factors
  int threads;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("head_size", head_size), visit("half", half), visit("q_heads", q_heads), visit("k_heads", k_heads);
    visit("x", x), visit("y", y), visit("table", table), visit("position", position);
    visit("neox", neox), visit("inverse", inverse), visit("scaled", scaled), visit("threads", threads);
  }
};

/// Heads of one operand and their result, [tokens, heads, D]. Strides in elements.
struct Heads {
  const void* x;
  void* y;
  int64_t x_token_stride, x_head_stride, y_token_stride, y_head_stride;
  float factor;  ///< of the result
};

/// Pairs that one thread rotates where addresses allow: 16 bytes of operand or result, whichever is wider, in one
/// access.
constexpr int vector_pairs(int64_t head_size, int64_t half, size_t widest_element, bool neox) {
  const int elements = 16 / static_cast<int>(widest_element), pairs = neox ? elements : elements / 2;
  return half % pairs == 0 && (head_size - 2 * half) % pairs == 0 ? pairs : 1;
}

struct Params {
  Heads q, k;
  const void *cos, *sin;  ///< [table_rows, half]
  const void* positions;  ///< [tokens]
  int64_t cos_stride, sin_stride, position_stride, table_rows, tokens;
  bool aligned;  ///< all rows may be accessed 16 bytes at a time
};

}  // namespace cermet::rope
