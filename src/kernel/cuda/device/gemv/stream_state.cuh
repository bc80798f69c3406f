// Where tasks of one kernel are in a ring of stages that belongs to all of them, and where that ring lies.
#pragma once

#include "kernel/cuda/device/gemv/pipeline.cuh"
#include "kernel/cuda/device/stream_ring.hpp"

namespace cermet {

/// Of a warp: the next stage, and which of two areas the next sums go to. It lives on from task to task.
struct StreamState {
  gemv::PipelineState stages;
  int buffer = 0;
  uint32_t rows = 0;  ///< stages of rows that its set of warps has multiplied
};

namespace stream {

/// A task's pipeline through the ring, of whose stages it needs so many bytes.
template <class Team, int StageBytes>
constexpr gemv::PipelineShape in_ring_of(gemv::PipelineShape shape) {
  static_assert(Team::ring_pitch >= StageBytes);
  shape.stages = Team::ring_stages;
  shape.stage_bytes = Team::ring_pitch;
  shape.in_flight = Team::ring_in_flight;
  return shape;
}
template <class Team>
CERMET_DEVICE char* ring_before(char* smem) {
  return smem - Team::ring_stages * Team::ring_pitch;
}
/// [stages] full, [stages] empty.
template <class Team>
CERMET_DEVICE uint64_t* barriers_before(char* smem) {
  return reinterpret_cast<uint64_t*>(ring_before<Team>(smem) - control_bytes);
}
/// Of a set's rows: [row_stages] full, [row_stages] empty.
template <class Team>
CERMET_DEVICE uint64_t* row_barriers_before(char* smem, int set) {
  return barriers_before<Team>(smem) + 2 * most_stages + set * 2 * row_stages;
}

}  // namespace stream

}  // namespace cermet
