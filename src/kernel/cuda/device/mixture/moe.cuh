// What a mixture of experts does between its parts.
#pragma once

#include "kernel/cuda/device/gemm/activation.cuh"
#include "kernel/cuda/device/mixture/moe.hpp"
#include "kernel/cuda/device/types.cuh"

namespace cermet::moe {

/// row[i] = activation(row[i]) * row[features + i]. One work item: a row.
template <Activation Function>
struct Gate {
  using Params = GateParams;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    float* row = p.rows + item * 2 * p.features;
    for (int64_t i = team.rank(); i < p.features; i += threads)
      row[i] = activate<Function>(row[i]) * row[p.features + i];
  }
};

/// load[e] = rows of expert e; dispatch[i, j] = rows that rank i sends to rank j. One work item: the load, or one
/// sending rank.
struct Count {
  using Params = CountParams;
  static constexpr int shared_bytes = pass_ranks * 4;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    if (item == 0) {
      for (int64_t e = team.rank(); e < p.experts; e += threads) p.load[e] = p.offsets[e + 1] - p.offsets[e];
      return;
    }
    int32_t* count = reinterpret_cast<int32_t*>(smem);
    const int64_t sender = item - 1, experts_each = p.experts / p.ranks;
    for (int64_t first = 0; first < p.ranks; first += pass_ranks) {
      const int64_t mine = min_of<int64_t>(pass_ranks, p.ranks - first);
      team.sync();
      for (int64_t r = team.rank(); r < mine; r += threads) count[r] = 0;
      team.sync();
      for (int64_t i = team.rank(); i < p.pairs_each; i += threads) {
        const int64_t receiver = p.ids[sender * p.pairs_each + i] / experts_each - first;
        if (receiver >= 0 && receiver < mine) atomicAdd(&count[receiver], 1);
      }
      team.sync();
      for (int64_t r = team.rank(); r < mine; r += threads)
        p.dispatch[sender * p.dispatch_stride + first + r] = count[r];
    }
    team.sync();
  }
};

}  // namespace cermet::moe
