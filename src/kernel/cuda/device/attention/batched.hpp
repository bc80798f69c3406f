// Parameters of attention over a batch of sequences of one length, and the configuration of biases and masks. Strides
// are in elements.
#pragma once

#include "kernel/cuda/device/attention/attention_params.hpp"

namespace cermet::attention {

struct ScoreConfig {
  DType bias;
  bool has_bias, has_mask;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("bias", bias), visit("has_bias", has_bias), visit("has_mask", has_mask);
  }
};

/// An operand that broadcasts to [B, Hq, S, T]; strides are 0 where it does.
struct ScoreOperand {
  const void* data;  ///< null for none
  int64_t batch_stride, head_stride, token_stride, key_stride;
  bool pairs;  ///< elements of keys 2 i and 2 i + 1 are side by side, and there are both, at a multiple of their size
};

struct BatchedParams {
  Params a;  ///< of the first sequence
  ScoreOperand bias, mask;
  int64_t q_batch_stride, k_batch_stride, v_batch_stride, o_batch_stride, lse_batch_stride;
  int64_t q_step, k_step, v_step;  ///< between the elements of a row
  const void* lengths;             ///< [sequences] of int32 or int64: their keys; null for all
  bool wide_lengths;               ///< int64
  int32_t tiles;                   ///< of a sequence and key-value head
  float masked_score;
};

}  // namespace cermet::attention
