// Skeleton of a CUDA kernel, device half. Copy to src/kernel/cuda/device/FAMILY/NAME.cuh. The library carries every
// header below device/, NVRTC compiles it at run time, and the tests compile it for every architecture and refuse
// spills. What follows is what the head of a kernel says; leave out what it does not have.
//
// rms_norm of float32 rows without a weight: y[r, i] = x[r, i] / sqrt(mean over i of x[r, i]^2 + eps).
//
//   Tiles      An item is 8 rows.
//   Threads    256: a warp for each row, of which a lane has every 32nd element.
//   Shared     None. Otherwise a map: offset, name, [sizes], what it holds; the bytes are the host half's
//   memory     `shared_bytes`, and `smem` below is their address.
//   Phases     squares  of a row, added up in a lane and over the warp
//              store    the row, read again, times its scale
//   Memory     8 bytes an element: read once from memory, once from a cache, and written once. 134 MB for
//              f32[4096, 4096], 40 us at 3.35 TB/s (H100).
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
  /// take several: a team.sync() then stands between the last reads of shared memory and the next item's first writes
  /// (device/entry.cuh). All threads of the team come to every team.sync(), those without work, too. Of an operator
  /// that may run in place (`in_place` of its definition), results may lie where operands do.
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
