// topk_gating with a block for each token, for any number of experts: nothing is kept of them, every choice is a pass
// over the logits.
#pragma once

#include "kernel/cuda/device/mixture/gating.cuh"
#include "kernel/cuda/device/sampling/group.cuh"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet::gating {

template <Config C>
struct BlockTask {
  using Params = gating::Params;
  using T = Element<C.logits>;
  static constexpr int group_size = C.experts / C.groups;

  struct Scratch {
    GroupScratch group;
    float reduce[2][32];
    uint32_t key[C.groups > 1 ? C.groups : 1];     ///< of each group
    uint32_t chosen[C.groups > 1 ? C.groups : 1];  ///< whether a group takes part
  };
  static_assert(C.groups <= block_groups);

  struct Row {
    const T* logits;
    const Element<C.bias>* bias;
    float maximum, sum;

    CERMET_DEVICE float score(int e) const {
      const float x = to_float(logits[e]);
      if constexpr (C.softmax) return expf(x - maximum) / sum;
      else return sigmoid(x);
    }
    CERMET_DEVICE uint32_t key(int e) const {
      float choice = by_score<C> ? score(e) : to_float(logits[e]);
      if constexpr (C.has_bias) choice += to_float(bias[e]);
      return order_key(choice);
    }
  };

  template <class Team>
  static __device__ Row make_row(const Params& p, uint32_t token, Team team, Scratch& s) {
    Row row{static_cast<const T*>(p.logits) + token * p.logits_stride, static_cast<const Element<C.bias>*>(p.bias), 0,
            0};
    if constexpr (C.softmax) {
      float maximum = -infinity(), sum = 0;
      for (int e = static_cast<int>(team.rank()); e < C.experts; e += C.threads)
        maximum = fmaxf(maximum, to_float(row.logits[e]));
      row.maximum = team_reduce<Maximum>(team, maximum, s.reduce[0]);
      for (int e = static_cast<int>(team.rank()); e < C.experts; e += C.threads)
        sum += expf(to_float(row.logits[e]) - row.maximum);
      row.sum = team_reduce<Sum>(team, sum, s.reduce[1]);
    }
    return row;
  }

  /// The largest number below `limit` among those that value(i), 0 <= i < count, packs with i.
  template <class Team, class Value>
  static __device__ uint64_t next_below(Team team, Group<Team>& group, int count, uint64_t limit, Value&& value) {
    uint64_t best = 0;
    for (int i = static_cast<int>(team.rank()); i < count; i += C.threads) {
      const uint64_t packed = static_cast<uint64_t>(value(i)) << 32 | (0xffffffffu - static_cast<uint32_t>(i));
      if (packed < limit && packed > best) best = packed;
    }
    return group.template block_reduce<MaxU64>(best);
  }

  template <class Team>
  static __device__ void choose_groups(const Row& row, Team team, Group<Team>& group, Scratch& s) {
    for (int g = static_cast<int>(team.rank()); g < C.groups; g += C.threads) {
      uint32_t first = 0, second = 0;
      for (int i = 0; i < group_size; ++i) {
        const uint32_t x = row.key(g * group_size + i);
        second = max_of(second, min_of(x, first));
        first = max_of(first, x);
      }
      s.key[g] = group_key(first, second, C.top2);
      s.chosen[g] = 0;
    }
    team.sync();
    uint64_t last = ~uint64_t{0};
    for (int j = 0; j < C.topk_groups; ++j) {
      last = next_below(team, group, C.groups, last, [&](int g) { return s.key[g]; });
      if (team.rank() == 0) s.chosen[0xffffffffu - static_cast<uint32_t>(last)] = 1;
    }
    team.sync();
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t token, Team team, char* smem) {
    static_assert(Team::size == C.threads && Team::cluster == 1);
    Scratch& s = *reinterpret_cast<Scratch*>(smem);
    Group group(team, s.group);
    const Row row = make_row(p, token, team, s);
    if constexpr (C.groups > 1) choose_groups(row, team, group, s);
    float* weights = p.weights + token * p.weights_stride;                             // [k]
    Element<C.ids>* ids = static_cast<Element<C.ids>*>(p.ids) + token * p.ids_stride;  // [k]
    uint64_t last = ~uint64_t{0};
    float sum = 0;
    for (int j = 0; j < C.k; ++j) {
      last = next_below(team, group, C.experts, last, [&](int e) {
        if constexpr (C.groups > 1) return s.chosen[e / group_size] ? row.key(e) : 0u;
        else return row.key(e);
      });
      const int id = static_cast<int>(0xffffffffu - static_cast<uint32_t>(last));
      const float score = row.score(id);
      sum += score;
      if (team.rank() == 0) {
        weights[j] = score;
        ids[j] = id;
      }
    }
    team.sync();
    for (int j = static_cast<int>(team.rank()); j < C.k; j += C.threads) {
      float w = weights[j];
      if (C.renormalize) w = sum == 0 ? 0.0f : w / sum;
      weights[j] = w * p.scale;
    }
    team.sync();
  }
};

}  // namespace cermet::gating
