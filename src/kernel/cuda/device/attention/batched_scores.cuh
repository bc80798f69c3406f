// What the operands of a batch of sequences of one length do to the scores of one of them.
#pragma once

#include "kernel/cuda/device/attention/batched.hpp"
#include "kernel/cuda/device/types.cuh"

namespace cermet::attention {

/// What a work item has: heads first, then the tiles of a sequence.
struct BatchItem {
  int kv_head, tile;
  int64_t batch;
};
__device__ __forceinline__ BatchItem batch_item(const BatchedParams& p, uint32_t item) {
  const uint32_t heads = static_cast<uint32_t>(p.a.kv_heads), tiles = static_cast<uint32_t>(p.tiles);
  return {static_cast<int>(item % heads), static_cast<int>(item / heads % tiles), item / heads / tiles};
}

/// Parameters of one sequence.
template <DType Q, DType KV, DType Out>
__device__ __forceinline__ Params batch_params(const BatchedParams& p, int64_t batch) {
  Params a = p.a;
  a.q = static_cast<const Element<Q>*>(a.q) + batch * p.q_batch_stride;
  a.k.data = static_cast<const Element<KV>*>(a.k.data) + batch * p.k_batch_stride;
  a.v.data = static_cast<const Element<KV>*>(a.v.data) + batch * p.v_batch_stride;
  a.o = static_cast<Element<Out>*>(a.o) + batch * p.o_batch_stride;
  if (a.lse) a.lse += batch * p.lse_batch_stride;
  return a;
}

struct ScoreConfig {
  DType bias;
  bool has_bias, has_mask;
};

template <ScoreConfig C>
struct BatchedScores {
  static constexpr bool changes = C.has_bias || C.has_mask, skips_zeros = true;
  using Bias = Element<C.bias>;
  const BatchedParams& p;
  int64_t batch;

  template <class T>
  __device__ __forceinline__ const T* place(const ScoreOperand& operand, int head, int token, int key) const {
    return static_cast<const T*>(operand.data) + batch * operand.batch_stride + head * operand.head_stride + token * operand.token_stride +
           key * operand.key_stride;
  }
  __device__ __forceinline__ float change(float score, int head, int token, int key) const {
    if constexpr (C.has_mask)
      if (!*place<uint8_t>(p.mask, head, token, key)) return p.masked_score;
    if constexpr (C.has_bias) score += to_float(*place<Bias>(p.bias, head, token, key));
    return score;
  }

  /// Elements for two neighbouring keys.
  struct Pair {
    Vector<Bias, 2> bias;
    Vector<uint8_t, 2> mask;
  };
  __device__ __forceinline__ Pair load(int head, int token, int key, int keys) const {
    Pair pair{};
    if constexpr (C.has_bias) pair.bias = read<Bias>(p.bias, head, token, key, keys);
    if constexpr (C.has_mask) pair.mask = read<uint8_t>(p.mask, head, token, key, keys);
    return pair;
  }
  __device__ __forceinline__ float change(float score, const Pair& pair, int which) const {
    if constexpr (C.has_bias) score += to_float(pair.bias[which]);
    if constexpr (C.has_mask)
      if (!pair.mask[which]) score = p.masked_score;
    return score;
  }

 private:
  /// Of keys `key` and the next; zeros from `keys` on.
  template <class T>
  __device__ __forceinline__ Vector<T, 2> read(const ScoreOperand& operand, int head, int token, int key, int keys) const {
    Vector<T, 2> pair{};
    const T* from = place<T>(operand, head, token, key);
    if (operand.pairs) {
      if (key < keys) pair = *reinterpret_cast<const Vector<T, 2>*>(from);
    } else {
      if (key < keys) pair[0] = *from;
      if (key + 1 < keys) pair[1] = from[operand.key_stride];
    }
    return pair;
  }
};

}  // namespace cermet::attention
