// Shared memory of a kernel that walks a list of tasks: control, the ring of stages of streamed weights, then what the
// tasks use one after the other.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::stream {

/// Barriers of the ring's stages, full ones and empty ones, and what the walk keeps beside them. The ring begins after
/// it.
inline constexpr int control_bytes = 1024;
inline constexpr int most_stages = 16;

/// Rows that meet streamed weights come through a small ring of their own for each of two sets of warps that multiply
/// (gemm/stream_walk.cuh): its stages, and the warps of a set.
inline constexpr int row_sets = 2, row_stages = 3, row_warps = 4;

}  // namespace cermet::stream
