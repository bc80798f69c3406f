// Configuration and parameters of the sample task.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/integers.hpp"

namespace cermet::sample {

struct Config {
  DType logits = {};
  int vocabulary = 0;
  int threads = 0, cluster = 1;
  bool in_shared = false;  ///< a block's share of the row fits into shared memory

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("logits", logits), visit("vocabulary", vocabulary), visit("threads", threads), visit("cluster", cluster);
    visit("in_shared", in_shared);
  }
};

/// Per sequence, [B]; what is null is switched off.
struct Params {
  const void* logits;
  const float* temperature;
  const int32_t* top_k;
  const float* top_p;
  const float* min_p;
  const float* penalty;
  const void* previous;
  const int64_t* seeds;
  const int64_t* steps;
  int32_t* ids;
  float* scratch;  ///< [B, vocabulary], where a row does not fit into shared memory
  int64_t logits_stride, previous_stride, previous_count;
  uint32_t wide_previous;
};

/// Bins of the distance from the largest scaled logit, in steps of 2^-6; the last bin holds all that weighs nothing.
inline constexpr int bins = 2048;
/// Tokens of one bin that are ranked against each other directly.
inline constexpr int candidates = 1024;
/// Shared memory besides a block's share of the row: bins of 8 and of 4 bytes, candidates, exchanges.
inline constexpr int fixed_shared_bytes = bins * 12 + candidates * 8 + 1024;

}  // namespace cermet::sample
