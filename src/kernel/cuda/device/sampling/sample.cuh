// sample: draws the next token of each sequence; the same bits as every other backend, because weights are integers
// (op/sampling.hpp).
//
// A group (a block or a cluster) keeps a row of scaled logits and cuts it off (sample_cut.cuh). Then the weights of
// what is kept are added in the order of ids, as far as the random number says.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/sampling/sample_cut.cuh"

namespace cermet::sample {

/// The parameters of a sequence; out of range ones give no token.
struct Settings {
  float temperature, top_p, min_p, penalty;
  int32_t top_k;

  __device__ Settings(const Params& p, uint32_t b)
      : temperature(p.temperature ? p.temperature[b] : 1.0f),
        top_p(p.top_p ? p.top_p[b] : 1.0f),
        min_p(p.min_p ? p.min_p[b] : 0.0f),
        penalty(p.penalty ? p.penalty[b] : 1.0f),
        top_k(p.top_k ? p.top_k[b] : 0) {}
  __device__ bool legal() const {
    return temperature >= 0 && temperature < infinity() && top_k >= 0 && top_p > 0 && top_p <= 1 && min_p >= 0 &&
           min_p <= 1 && penalty > 0 && penalty < infinity();
  }
};

template <Config C, class Team>
struct Sampler : Cut<C, Team> {
  using T = Element<C.logits>;
  using typename Cut<C, Team>::Group;
  using typename Cut<C, Team>::Row;
  using typename Cut<C, Team>::Shared;
  using Cut<C, Team>::share;
  using Cut<C, Team>::warp_share;

  /// Reads the row, applies the penalty; returns the group's largest rank by penalised logit.
  static __device__ uint64_t load_row(const Params& p, uint32_t b, float penalty, Row& row) {
    const T* logits = static_cast<const T*>(p.logits) + b * p.logits_stride + row.first;  // [size]
    row.template for_tokens<8>([&](int i) { row.x[i] = to_float(logits[i]); });
    if (p.previous) {
      Team::sync();
      for (int64_t i = Team::rank(); i < p.previous_count; i += C.threads) {
        const int64_t at = load_index(p.previous, p.wide_previous, b * p.previous_stride + i) - row.first;
        if (at >= 0 && at < row.size)
          row.x[at] = penalized(to_float(logits[at]), penalty);  // from the original: a repeated id changes nothing
      }
      Team::sync();
    }
    uint64_t best = 0;
    row.for_tokens([&](int i) {
      const uint64_t rank = row.rank(i);
      best = rank > best ? rank : best;
    });
    return row.group.template reduce<MaxU64>(best);
  }

  /// The lowest id whose weight together with that of all lower ids exceeds the random target.
  static __device__ uint32_t draw(Row& row, const Settings& settings, uint64_t cut, uint64_t random) {
    Shared& s = row.s;
    const int warp = static_cast<int>(Team::warp()), lane = static_cast<int>(lane_index());
    uint64_t sum = 0;
    row.template for_tokens<2>([&](int i) {
      float exponential = 0;
      if (row.rank(i) >= cut) exponential = sampling_exp(row.x[i] - row.largest);
      if (exponential < settings.min_p) exponential = 0;
      row.x[i] = exponential;
      sum += sampling_weight(exponential);
    });
    sum = warp_reduce_u64<SumU64>(sum);
    if (lane == 0) s.warp_weight[warp] = sum;
    const uint64_t own = row.group.template block_reduce<SumU64>(lane == 0 ? sum : 0);
    const uint64_t* slot = row.group.publish(own);
    uint64_t before = 0, total = 0;
    for (uint32_t r = 0; r < C.cluster; ++r) {
      const uint64_t other = Group::read(slot, r);
      if (r < Group::rank()) before += other;
      total += other;
    }
    const uint64_t target = scale_random(total, random);
    for (int w = 0; w < warp; ++w) before += s.warp_weight[w];
    if (before <= target && before + sum > target) {  // one warp of the group
      for (int i = warp * warp_share + lane;; i += 32) {
        const uint64_t weight = i < min_of(warp * warp_share + warp_share, row.size) ? sampling_weight(row.x[i]) : 0;
        const uint64_t reached = before + warp_scan_u64(weight);
        const uint32_t over = __ballot_sync(0xffffffffu, reached > target);
        if (over) return row.first + static_cast<uint32_t>(i - lane + __ffs(static_cast<int>(over)) - 1);
        before = __shfl_sync(0xffffffffu, reached, 31);
      }
    }
    return 0xffffffffu;
  }

  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    Shared& s = *reinterpret_cast<Shared*>(smem);
    Group group(team, s.group);
    const uint32_t b = item / C.cluster, first = Group::rank() * share;
    Row row{s, group, nullptr, first, max_of(0, min_of(share, C.vocabulary - static_cast<int>(first)))};
    if constexpr (C.in_shared) row.x = reinterpret_cast<float*>(smem + fixed_shared_bytes);
    else row.x = p.scratch + static_cast<int64_t>(b) * C.vocabulary + first;
    const Settings settings(p, b);
    uint32_t id = 0xffffffffu;
    if (settings.legal()) {
      const uint64_t best = load_row(p, b, settings.penalty, row);
      row.largest = Row::scaled_of(best) / settings.temperature;
      if (settings.temperature == 0 || !(fabsf(row.largest) < infinity())) {
        id = Team::rank() == 0 && Group::rank() == 0 ? 0xffffffffu - static_cast<uint32_t>(best) : id;
      } else {
        row.template for_tokens<2>([&](int i) { row.x[i] /= settings.temperature; });
        uint64_t cut = 0;
        if (settings.top_k > 0 && settings.top_k < C.vocabulary) cut = Sampler::top_k_cut(row, settings.top_k);
        if (settings.top_p < 1) cut = Sampler::top_p_cut(row, settings.top_p, cut);
        id =
            draw(row, settings, cut, random_bits(static_cast<uint64_t>(p.seeds[b]), static_cast<uint64_t>(p.steps[b])));
      }
    } else if (Team::rank() == 0 && Group::rank() == 0) {
      p.ids[b] = -1;
    }
    if (id != 0xffffffffu && (lane_index() == 0)) p.ids[b] = static_cast<int32_t>(id);
    group.barrier();  // other blocks may still read this one's shared memory, and the next sequence reuses it
  }
};

/// One work item: a block's share of a sequence.
template <Config C>
struct Task {
  using Params = sample::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    Sampler<C, Team>::run(p, item, team, smem);
  }
};

}  // namespace cermet::sample
