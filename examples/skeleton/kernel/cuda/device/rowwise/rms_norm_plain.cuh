// Skeleton of a CUDA kernel, device half: rms_norm of float32 rows without a weight, a row for each warp. Copy to
// src/kernel/cuda/device/FAMILY/NAME.cuh. The library carries every header below device/, NVRTC compiles it at run
// time, and the tests compile it for every architecture and refuse spills.
#pragma once

#include "kernel/cuda/device/rowwise/rms_norm_plain.hpp"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet::rms_norm_plain {

/// A task, not a kernel: the same body runs alone, in a captured graph and among other tasks of one launch. What a
/// program knows when it is compiled (types, sizes) would be template arguments, as fields of a Config.
struct Task {
  using Params = rms_norm_plain::Params;

  static __device__ float* start_of(const RowOperand& operand, const RowDims& dims, int64_t row) {
    float* data = static_cast<float*>(operand.data);
    if (dims.inner == 0) return data + row * operand.step[0];
    const int64_t middle = row / dims.inner;
    return data + row % dims.inner * operand.step[0] + middle % dims.middle * operand.step[1] +
           middle / dims.middle * operand.step[2];
  }

  /// One work item, by a team of threads; the launch has as many as the host half asked for, and a thread block may
  /// take several.
  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t row = static_cast<int64_t>(item) * rows_per_item + team.warp();
    if (row >= p.rows) return;
    const int lane = static_cast<int>(lane_index());
    const float* x = start_of(p.x, p.dims, row);
    float* y = start_of(p.y, p.dims, row);
    float squares = 0;
    for (int64_t i = lane; i < p.length; i += 32) squares += x[i] * x[i];
    const float scale = 1.0f / sqrtf(warp_reduce<Sum>(squares) / static_cast<float>(p.length) + p.eps);
    for (int64_t i = lane; i < p.length; i += 32) y[i] = x[i] * scale;
  }
};

}  // namespace cermet::rms_norm_plain
