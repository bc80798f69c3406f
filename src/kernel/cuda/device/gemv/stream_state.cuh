// Where tasks of one kernel are in a ring of stages that belongs to all of them, and where that ring lies.
#pragma once

#include "kernel/cuda/device/gemv/pipeline.cuh"
#include "kernel/cuda/device/ptx/global.cuh"
#include "kernel/cuda/device/stream_ring.hpp"

namespace cermet {

/// Of a warp: the next stage, and which of two areas the next sums go to. It lives on from task to task.
struct StreamState {
  gemv::PipelineState stages;
  int buffer = 0;
};

namespace stream {

template <class Team>
__device__ __forceinline__ char* ring_before(char* smem) {
  return smem - Team::ring_stages * Team::ring_pitch;
}
/// [stages] full, [stages] empty.
template <class Team>
__device__ __forceinline__ uint64_t* barriers_before(char* smem) {
  return reinterpret_cast<uint64_t*>(ring_before<Team>(smem) - control_bytes);
}

}  // namespace stream

#if CERMET_ARCH >= 900
namespace gemv {

/// Asks the L2 for the first `bytes` of all rows; by a whole warp.
__device__ __forceinline__ void prefetch_rows(const WeightRows& w, int matrices, int row_bytes, int bytes) {
  constexpr int at_once = 16384;
  const int rows = min_of(w.end - w.first, (bytes / matrices + row_bytes - 1) / row_bytes);
  for (int m = 0; m < matrices; ++m) {
    const char* const from = w.matrix[m] + w.first * w.stride[m];
    if (w.stride[m] != row_bytes || (reinterpret_cast<uintptr_t>(from) & 15) != 0) return;
    const int all = rows * row_bytes;
    for (int at = static_cast<int>(lane_index()) * at_once; at < all; at += 32 * at_once) ptx::prefetch_l2(from + at, min_of(at_once, all - at));
  }
}

}  // namespace gemv
#endif

}  // namespace cermet
