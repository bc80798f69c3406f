// Attention over a batch of sequences of one length, with biases and masks, operands in any layout: the general task for each sequence.
#pragma once

#include "kernel/cuda/device/attention/batched.hpp"
#include "kernel/cuda/device/attention/general.cuh"

namespace cermet::attention {

struct BatchedConfig {
  GeneralConfig general;
  DType bias;
  bool has_bias, has_mask, steps;  ///< steps: elements of a row may be apart
};

template <BatchedConfig C>
struct BatchedTask {
  using Params = BatchedParams;
  using General = GeneralTask<C.general>;

  /// What operands do to the scores of one sequence.
  struct Operands {
    static constexpr bool changes = C.has_bias || C.has_mask, steps = C.steps;
    const BatchedParams& p;
    int64_t batch;

    __device__ __forceinline__ float change(float score, int head, int token, int key) const {
      const auto place = [&](const ScoreOperand& operand) {
        return batch * operand.batch_stride + head * operand.head_stride + token * operand.token_stride + key * operand.key_stride;
      };
      if constexpr (C.has_mask)
        if (!static_cast<const uint8_t*>(p.mask.data)[place(p.mask)]) return p.masked_score;
      if constexpr (C.has_bias) score += to_float(static_cast<const Element<C.bias>*>(p.bias.data)[place(p.bias)]);
      return score;
    }
    __device__ __forceinline__ int64_t q_step() const { return p.q_step; }
    __device__ __forceinline__ int64_t k_step() const { return p.k_step; }
    __device__ __forceinline__ int64_t v_step() const { return p.v_step; }
  };

  template <class Team>
  static __device__ __forceinline__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    const int kv_head = static_cast<int>(item % static_cast<uint32_t>(p.a.kv_heads));
    const int tile = static_cast<int>(item / static_cast<uint32_t>(p.a.kv_heads)) % p.tiles;
    const int64_t batch = item / static_cast<uint32_t>(p.a.kv_heads) / static_cast<uint32_t>(p.tiles);
    attention::Params a = p.a;
    a.q = static_cast<const Element<C.general.q>*>(a.q) + batch * p.q_batch_stride;
    a.k.data = static_cast<const Element<C.general.kv>*>(a.k.data) + batch * p.k_batch_stride;
    a.v.data = static_cast<const Element<C.general.kv>*>(a.v.data) + batch * p.v_batch_stride;
    a.o = static_cast<Element<C.general.out>*>(a.o) + batch * p.o_batch_stride;
    if (a.lse) a.lse += batch * p.lse_batch_stride;
    General::attend(a, Operands{p, batch}, Sequence{0, 0, a.tokens, a.key_tokens, 0}, kv_head, tile * General::rows, team, smem);
  }
};

}  // namespace cermet::attention
