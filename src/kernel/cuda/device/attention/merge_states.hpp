// Configuration and parameters of the merge_attention_states task.
#pragma once

#include "kernel/cuda/device/dtype.hpp"

namespace cermet::merge_states {

struct Config {
  int size;
  DType a, b, out;
  int threads;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("size", size), visit("a", a), visit("b", b), visit("out", out);
    visit("threads", threads);
  }
};

/// Attention over some keys and the logarithms of its denominators.
struct State {
  const void* o;     ///< [tokens, heads, size]
  const float* lse;  ///< [heads, tokens]
  int64_t token_stride, head_stride, lse_stride;
};

struct Params {
  State a, b;
  void* o;
  float* lse;
  int64_t token_stride, head_stride, lse_stride, rows;  ///< rows: tokens * heads
  int32_t heads;
};

}  // namespace cermet::merge_states
