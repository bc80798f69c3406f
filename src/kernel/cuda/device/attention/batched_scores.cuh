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
CERMET_DEVICE BatchItem batch_item(const BatchedParams& p, uint32_t item) {
  const uint32_t heads = static_cast<uint32_t>(p.a.kv_heads), tiles = static_cast<uint32_t>(p.tiles);
  return {static_cast<int>(item % heads), static_cast<int>(item / heads % tiles), item / heads / tiles};
}

/// Parameters of one sequence.
template <DType Q, DType KV, DType Out>
CERMET_DEVICE Params batch_params(const BatchedParams& p, int64_t batch) {
  Params a = p.a;
  a.q = static_cast<const Element<Q>*>(a.q) + batch * p.q_batch_stride;
  a.k.data = static_cast<const Element<KV>*>(a.k.data) + batch * p.k_batch_stride;
  a.v.data = static_cast<const Element<KV>*>(a.v.data) + batch * p.v_batch_stride;
  a.o = static_cast<Element<Out>*>(a.o) + batch * p.o_batch_stride;
  if (a.lse) a.lse += batch * p.lse_batch_stride;
  if (p.lengths) {
    const int64_t length = p.wide_lengths ? static_cast<const int64_t*>(p.lengths)[batch]
                                          : int64_t{static_cast<const int32_t*>(p.lengths)[batch]};
    a.key_tokens = static_cast<int32_t>(max_of(int64_t{0}, min_of(length, int64_t{a.key_tokens})));
  }
  return a;
}

template <int Bytes>
using Both = Unsigned<2 * Bytes>;  ///< two of them, in a register each where that is possible: as vectors they would be
                                   ///< taken apart at once

template <ScoreConfig C>
struct BatchedScores {
  static constexpr bool changes = C.has_bias || C.has_mask, skips_zeros = true;
  using Bias = Element<C.bias>;
  const BatchedParams& p;
  int64_t batch;

  template <class T>
  CERMET_DEVICE const T* place(const ScoreOperand& operand, int head, int token, int key) const {
    return static_cast<const T*>(operand.data) + batch * operand.batch_stride + head * operand.head_stride +
           token * operand.token_stride + key * operand.key_stride;
  }
  CERMET_DEVICE float change(float score, int head, int token, int key) const {
    if constexpr (C.has_mask)
      if (!*place<uint8_t>(p.mask, head, token, key)) return p.masked_score;
    if constexpr (C.has_bias) score += to_float(*place<Bias>(p.bias, head, token, key));
    return score;
  }

  /// Elements for two neighbouring keys, the first in the lower half.
  struct Pair {
    Both<sizeof(Bias)> bias;
    Both<1> mask;
  };
  /// For keys first, first + 8 and so on, each with the next; zeros from `keys` on.
  template <int Count>
  CERMET_DEVICE void load(int head, int token, int first, int keys, Pair (&pairs)[Count]) const {
    if constexpr (C.has_bias)
      read<Bias, Count>(p.bias, head, token, first, keys,
                        [&](int n, Both<sizeof(Bias)> both) { pairs[n].bias = both; });
    if constexpr (C.has_mask)
      read<uint8_t, Count>(p.mask, head, token, first, keys, [&](int n, Both<1> both) { pairs[n].mask = both; });
  }
  /// The same where both operands have pairs.
  template <int Count>
  CERMET_DEVICE void load_pairs(int head, int token, int first, int keys, Pair (&pairs)[Count]) const {
    if constexpr (C.has_bias) {
      const Bias* const from = place<Bias>(p.bias, head, token, first);
#pragma unroll
      for (int n = 0; n < Count; ++n) pairs[n].bias = pair_at(from, first, n, keys);
    }
    if constexpr (C.has_mask) {
      const uint8_t* const from = place<uint8_t>(p.mask, head, token, first);
#pragma unroll
      for (int n = 0; n < Count; ++n) pairs[n].mask = pair_at(from, first, n, keys);
    }
  }
  CERMET_DEVICE float change(float score, const Pair& pair, int which) const {
    if constexpr (C.has_bias) score += to_float(part<Bias>(pair.bias, which));
    if constexpr (C.has_mask)
      if (!part<uint8_t>(pair.mask, which)) score = p.masked_score;
    return score;
  }

 private:
  template <class T>
  static CERMET_DEVICE T part(Both<sizeof(T)> both, int which) {
    return __builtin_bit_cast(T, static_cast<Unsigned<sizeof(T)>>(both >> (8 * static_cast<int>(sizeof(T)) * which)));
  }
  template <class T>
  static CERMET_DEVICE Both<sizeof(T)> pair_at(const T* from, int first, int n, int keys) {
    return first + 8 * n < keys ? *reinterpret_cast<const Both<sizeof(T)>*>(from + 8 * n) : Both<sizeof(T)>{0};
  }
  /// One branch for all loads, none of which waits for another.
  template <class T, int Count, class Take>
  CERMET_DEVICE void read(const ScoreOperand& operand, int head, int token, int first, int keys, Take&& take) const {
    const T* from = place<T>(operand, head, token, first);
    if (operand.pairs) {
#pragma unroll
      for (int n = 0; n < Count; ++n) take(n, pair_at(from, first, n, keys));
    } else {
#pragma unroll
      for (int n = 0; n < Count; ++n) {
        const auto element = [&](int key) -> Both<sizeof(T)> {
          return first + key < keys ? __builtin_bit_cast(Unsigned<sizeof(T)>, from[key * operand.key_stride])
                                    : Unsigned<sizeof(T)>{0};
        };
        take(n, static_cast<Both<sizeof(T)>>(element(8 * n) | element(8 * n + 1) << (8 * static_cast<int>(sizeof(T)))));
      }
    }
  }
};

}  // namespace cermet::attention
