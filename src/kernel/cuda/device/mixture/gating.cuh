// topk_gating with a warp for each token: lane l holds experts l * per .. (l + 1) * per - 1, so that of equal keys the
// lowest lane has the lowest id.
#pragma once

#include "kernel/cuda/device/mixture/gating.hpp"
#include "kernel/cuda/device/types.cuh"
#include "op/float_order.hpp"

namespace cermet::gating {

/// Whether scores, not logits, decide.
template <Config C>
inline constexpr bool by_score = C.has_bias || C.groups > 1;

CERMET_DEVICE uint32_t warp_max(uint32_t x) {
#if CERMET_ARCH >= 800
  return __reduce_max_sync(0xffffffffu, x);
#else
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x = max_of(x, __shfl_xor_sync(0xffffffffu, x, offset));
  return x;
#endif
}

CERMET_DEVICE float warp_sum(float x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffu, x, offset);
  return x;
}

/// 1 / (1 + exp(-x)) without overflow on either side.
CERMET_DEVICE float sigmoid(float x) {
  const float t = expf(-fabsf(x));
  return (x >= 0 ? 1.0f : t) / (1.0f + t);
}

/// Key of a group from its largest and second largest key; 0 where there is no second.
CERMET_DEVICE uint32_t group_key(uint32_t first, uint32_t second, bool top2) {
  return top2 && second != 0 ? order_key(value_of_order_key(first) + value_of_order_key(second)) : first;
}

template <Config C>
struct Task {
  using Params = gating::Params;
  using T = Element<C.logits>;
  static constexpr int per = static_cast<int>(div_up(C.experts, 32)), warps = C.threads / 32;
  static constexpr int group_size = C.experts / C.groups, group_slots = static_cast<int>(div_up(C.groups, 32)),
                       k_slots = static_cast<int>(div_up(C.k, 32));
  static_assert(C.experts <= warp_experts);
  /// Shared memory of a warp, where groups need it: keys of all experts, then one word for each group.
  static constexpr int warp_words = C.groups > 1 ? C.experts + C.groups : 0;

  /// Places of the key `wanted` in this lane: the first, or -1.
  static CERMET_DEVICE int find(const uint32_t (&key)[per], uint32_t wanted) {
    int at = -1;
#pragma unroll
    for (int i = per - 1; i >= 0; --i) at = key[i] == wanted ? i : at;
    return at;
  }

  /// Sets the keys outside the chosen groups to 0, which is below every number's.
  static CERMET_DEVICE void drop_groups(uint32_t (&key)[per], uint32_t lane, uint32_t* keys) {
    uint32_t* chosen = keys + C.experts;
#pragma unroll
    for (int i = 0; i < per; ++i)
      if (lane * per + i < C.experts) keys[lane * per + i] = key[i];
    __syncwarp();
    uint32_t of_group[group_slots];
#pragma unroll
    for (int s = 0; s < group_slots; ++s) {
      const int g = static_cast<int>(lane) * group_slots + s;
      uint32_t first = 0, second = 0;
      for (int i = 0; i < group_size && g < C.groups; ++i) {
        const uint32_t x = keys[g * group_size + i];
        second = max_of(second, min_of(x, first));
        first = max_of(first, x);
      }
      of_group[s] = group_key(first, second, C.top2);
      if (g < C.groups) chosen[g] = 0;
    }
    __syncwarp();
    for (int j = 0; j < C.topk_groups; ++j) {
      uint32_t best = 0;
#pragma unroll
      for (int s = 0; s < group_slots; ++s) best = max_of(best, of_group[s]);
      const uint32_t largest = warp_max(best);
      const uint32_t owner =
          static_cast<uint32_t>(__ffs(static_cast<int>(__ballot_sync(0xffffffffu, best == largest)))) - 1;
      if (lane == owner) {
        bool open = true;
#pragma unroll
        for (int s = 0; s < group_slots; ++s)
          if (open && of_group[s] == largest) {
            open = false;
            of_group[s] = 0;
            chosen[lane * group_slots + s] = 1;
          }
      }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < per; ++i)
      if (lane * per + i < C.experts && chosen[(lane * per + i) / group_size] == 0) key[i] = 0;
    __syncwarp();
  }

  /// `row` [experts]; vectors: it starts at a multiple of 16 bytes.
  static CERMET_DEVICE void load_logits(const T* row, bool vectors, uint32_t lane, float (&logit)[per]) {
    constexpr bool whole = C.experts % 32 == 0 && (per & (per - 1)) == 0;
    constexpr int width = min_of(per, per_16_bytes<T>);
    if constexpr (whole)
      if (vectors) {
#pragma unroll
        for (int i = 0; i < per / width; ++i) {
          const auto v = reinterpret_cast<const Vector<T, width>*>(row + lane * per)[i];
#pragma unroll
          for (int j = 0; j < width; ++j) logit[i * width + j] = to_float(v[j]);
        }
        return;
      }
#pragma unroll
    for (int i = 0; i < per; ++i) logit[i] = lane * per + i < C.experts ? to_float(row[lane * per + i]) : -infinity();
  }

  /// score = softmax or sigmoid of the logits; experts that do not exist score 0.
  static CERMET_DEVICE void score_logits(uint32_t lane, const float (&logit)[per], float (&score)[per]) {
    if constexpr (C.softmax) {
      float maximum = -infinity(), sum = 0;
#pragma unroll
      for (int i = 0; i < per; ++i) maximum = logit[i] > maximum ? logit[i] : maximum;
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2)
        maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, offset));
#pragma unroll
      for (int i = 0; i < per; ++i) {
        score[i] = lane * per + i < C.experts ? expf(logit[i] - maximum) : 0.0f;
        sum += score[i];
      }
      sum = warp_sum(sum);
#pragma unroll
      for (int i = 0; i < per; ++i) score[i] /= sum;
    } else {
#pragma unroll
      for (int i = 0; i < per; ++i) score[i] = sigmoid(logit[i]);
    }
  }

  /// Keys by which experts are chosen: in the order of their scores or logits, 0 for experts that do not exist.
  /// `words`: shared memory of the warp.
  static CERMET_DEVICE void make_keys(const void* bias, uint32_t lane, const float (&logit)[per],
                                      const float (&score)[per], uint32_t* words, uint32_t (&key)[per]) {
#pragma unroll
    for (int i = 0; i < per; ++i) {
      const int e = static_cast<int>(lane) * per + i;
      float choice = by_score<C> ? score[i] : logit[i];
      if (C.has_bias && e < C.experts) choice += to_float(static_cast<const Element<C.bias>*>(bias)[e]);
      key[i] = e < C.experts ? order_key(choice) : 0;
    }
    if constexpr (C.groups > 1) drop_groups(key, lane, words);
  }

  /// Calls visit(j, owner, at) for choices j of [first, last): the expert in place `at` of lane `owner`, where `at`
  /// counts. Chosen keys become 0. `at_once` choices are unrolled: many pay where many tokens are chosen for, one where
  /// the code runs once and costs what reading it costs.
  template <int at_once, class Visit>
  static CERMET_DEVICE void choose(uint32_t lane, int first, int last, uint32_t (&key)[per], Visit&& visit) {
#pragma unroll at_once
    for (int j = first; j < last; ++j) {
      uint32_t best = 0;
#pragma unroll
      for (int i = 0; i < per; ++i) best = max_of(best, key[i]);
      const uint32_t largest = warp_max(best);
      const uint32_t holders = __ballot_sync(0xffffffffu, best == largest);
      const int at = find(key, largest);
      visit(j, __ffs(static_cast<int>(holders)) - 1, at);
      const bool owns = (holders & ((2u << lane) - 1)) == 1u << lane;
#pragma unroll
      for (int i = 0; i < per; ++i)
        if (owns && i == at) key[i] = 0;
    }
  }

  /// The experts of a token, of which lane j gets the j-th. Whole warps call.
  static CERMET_DEVICE int find_ids(const T* row, const void* bias, bool vectors, uint32_t lane) {
    static_assert(C.k <= 32 && C.groups == 1);
    float logit[per], score[per] = {};
    load_logits(row, vectors, lane, logit);
    if constexpr (by_score<C>) score_logits(lane, logit, score);
    uint32_t key[per];
    make_keys(bias, lane, logit, score, nullptr, key);
    int id = 0;
    choose<1>(lane, 0, C.k, key, [&](int j, int owner, int at) {
      const int expert = __shfl_sync(0xffffffffu, static_cast<int>(lane) * per + at, owner);
      if (static_cast<int>(lane) == j) id = expert;
    });
    return id;
  }

  /// A token by a warp. keep_ids: whether there is a place for ids for sure; else `p.ids` may be null.
  template <bool keep_ids>
  static CERMET_DEVICE void run_token(const Params& p, int64_t token, uint32_t lane, uint32_t* words) {
    float logit[per], score[per];
    load_logits(static_cast<const T*>(p.logits) + token * p.logits_stride, p.vectors, lane, logit);
    score_logits(lane, logit, score);
    uint32_t key[per];
    make_keys(p.bias, lane, logit, score, words, key);
    float weight[k_slots], sum = 0;  // lane j % 32 keeps the j-th choice in slot j / 32
    int id[k_slots];
#pragma unroll
    for (int s = 0; s < k_slots; ++s) {
      weight[s] = 0;
      id[s] = 0;
      choose<min_of(C.k, 4)>(lane, s * 32, min_of(C.k, s * 32 + 32), key, [&](int j, int owner, int at) {
        float chosen = 0;
#pragma unroll
        for (int i = 0; i < per; ++i) chosen = i == at ? score[i] : chosen;
        chosen = __shfl_sync(0xffffffffu, chosen, owner);
        const int expert = __shfl_sync(0xffffffffu, static_cast<int>(lane) * per + at, owner);
        if (static_cast<int>(lane) == j - s * 32) {
          weight[s] = chosen;
          id[s] = expert;
        }
        sum += chosen;
      });
    }
#pragma unroll
    for (int s = 0; s < k_slots; ++s) {
      const int j = s * 32 + static_cast<int>(lane);
      if (j >= C.k) continue;
      float w = weight[s];
      if (C.renormalize) w = sum == 0 ? 0.0f : w / sum;
      p.weights[token * p.weights_stride + j] = w * p.scale;
      if (keep_ids || p.ids != nullptr) static_cast<Element<C.ids>*>(p.ids)[token * p.ids_stride + j] = id[s];
    }
  }

  /// One work item: a token for each warp.
  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    const uint32_t warp = team.warp();
    const int64_t token = static_cast<int64_t>(item) * warps + warp;
    if (token < p.tokens)
      run_token<true>(p, token, lane_index(), reinterpret_cast<uint32_t*>(smem) + warp * warp_words);
  }
};

}  // namespace cermet::gating
