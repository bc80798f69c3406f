// Indices in int64 as int32. Those that int32 does not hold become some that no operand has.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/movement/narrow_indices.hpp"

namespace cermet::narrow_indices {

/// One work item: an index for each thread.
struct Task {
  using Params = narrow_indices::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t at = static_cast<int64_t>(item) * threads + team.rank();
    if (at >= p.axes.count) return;
    int64_t offset[1];
    offsets_at(p.axes, at, offset);
    p.to[at] = static_cast<int32_t>(min_of<int64_t>(max_of<int64_t>(p.from[offset[0]], -1), 0x7fffffff));
  }
};

}  // namespace cermet::narrow_indices
