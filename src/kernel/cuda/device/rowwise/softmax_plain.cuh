// Softmax over rows of f64, computed in double: a warp for each row, in three passes.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/rowwise/softmax_plain.hpp"

namespace cermet::softmax_plain {

struct Task {
  using Params = softmax_plain::Params;

  template <class Combine>
  static CERMET_DEVICE double over_lanes(double value, Combine combine) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t row = static_cast<int64_t>(item) * (threads / 32) + team.warp();
    if (row >= p.rows.count) return;
    int64_t offset[2];
    offsets_at(p.rows, row, offset);
    const double* x = p.x + offset[0];
    double* y = p.y + offset[1];
    const auto larger = [](double a, double b) { return a > b || a != a ? a : b; };
    double largest = -static_cast<double>(infinity()), sum = 0;
    for (int64_t i = lane_index(); i < p.length; i += 32) largest = larger(largest, x[i]);
    largest = over_lanes(largest, larger);
    for (int64_t i = lane_index(); i < p.length; i += 32) sum += ::exp(x[i] - largest);
    sum = over_lanes(sum, [](double a, double b) { return a + b; });
    const double log_sum = p.logarithm != 0 ? ::log(sum) : 0.0;
    for (int64_t i = lane_index(); i < p.length; i += 32) {
      const double distance = x[i] - largest;
      y[i] = p.logarithm != 0 ? distance - log_sum : ::exp(distance) / sum;
    }
  }
};

}  // namespace cermet::softmax_plain
