// expert_load: how often each id occurs. Ids outside [0, experts) are not counted.
#pragma once

#include "kernel/cuda/device/mixture/load.hpp"
#include "kernel/cuda/device/movement/axes.cuh"

namespace cermet::expert_load {

/// One work item: all ids, for block_experts experts.
struct Task {
  using Params = expert_load::Params;
  static constexpr int shared_bytes = block_experts * 4;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    int32_t* count = reinterpret_cast<int32_t*>(smem);
    const int64_t first = static_cast<int64_t>(item) * block_experts,
                  mine = min_of<int64_t>(block_experts, p.experts - first);
    for (int e = static_cast<int>(team.rank()); e < mine; e += threads) count[e] = 0;
    team.sync();
    constexpr int in_flight = 8;  // loads in flight before the first counter waits for one
    for (int64_t begin = team.rank(); begin < p.axes.count; begin += threads * in_flight) {
      int64_t expert[in_flight];
#pragma unroll
      for (int i = 0; i < in_flight; ++i) {
        int64_t offset[1];
        expert[i] = -1;
        if (begin + i * threads >= p.axes.count) continue;
        offsets_at(p.axes, begin + i * threads, offset);
        expert[i] = load_index(p.ids, p.wide_ids, offset[0]) - first;
      }
#pragma unroll
      for (int i = 0; i < in_flight; ++i)
        if (expert[i] >= 0 && expert[i] < mine) atomicAdd(&count[expert[i]], 1);
    }
    team.sync();
    for (int e = static_cast<int>(team.rank()); e < mine; e += threads) p.counts[first + e] = count[e];
    team.sync();
  }
};

}  // namespace cermet::expert_load
