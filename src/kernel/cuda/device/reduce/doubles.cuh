// Reductions of f64: accumulated in double, by the lanes of a warp and then between them.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/reduce/reduce.hpp"

namespace cermet::reduce {

/// One work item: a result for each warp. NaN where any element is, of a maximum and a minimum too.
template <Kind K>
struct Doubles {
  using Params = PlainParams;

  static CERMET_DEVICE double identity() {
    if constexpr (K == Kind::max) return -static_cast<double>(infinity());
    else if constexpr (K == Kind::min) return static_cast<double>(infinity());
    else return K == Kind::prod ? 1.0 : 0.0;
  }
  static CERMET_DEVICE double combine(double a, double b) {
    if constexpr (K == Kind::max) return a > b || a != a ? a : b;
    else if constexpr (K == Kind::min) return a < b || a != a ? a : b;
    else return K == Kind::prod ? a * b : a + b;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t result = static_cast<int64_t>(item) * (threads / 32) + team.warp();
    if (result >= p.kept.count) return;
    int64_t offset[2], term[1];
    offsets_at(p.kept, result, offset);
    const double* x = static_cast<const double*>(p.x) + offset[0];
    double value = identity();
    for (int64_t at = lane_index(); at < p.reduced.count; at += 32) {
      offsets_at(p.reduced, at, term);
      value = combine(value, x[term[0]]);
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, step));
    if constexpr (K == Kind::mean) value /= static_cast<double>(p.reduced.count);
    if (lane_index() == 0) static_cast<double*>(p.y)[offset[1]] = value;
  }
};

}  // namespace cermet::reduce
