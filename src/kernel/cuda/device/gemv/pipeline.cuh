// The ring of stages in shared memory through which weights stream: a producer warp fills stages, consumer warps empty
// them (sm_90 on). A stage has two barriers:
//
//   full    completed by an arrival of the producer and the bytes of its copies     consumers wait
//   empty   completed by an arrival of each consumer warp                           the producer waits
#pragma once

#include "kernel/cuda/device/ptx/bulk_copy.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/team.cuh"

namespace cermet {

namespace gemv {

struct PipelineShape {
  int stages, stage_bytes, consumers;
  int in_flight = 0;  ///< stages at most whose bytes are on their way; 0: all
};

/// Where a warp is in the ring of stages; it lives on from item to item.
struct PipelineState {
  int stage = 0;
  uint32_t parity = 0;
};

#if CERMET_ARCH >= 900
template <PipelineShape S>
struct Pipeline {
  char* data;              ///< [stages][stage_bytes]
  uint64_t *full, *empty;  ///< [stages]
  int stage;
  uint32_t parity;

  CERMET_DEVICE Pipeline(char* memory, uint64_t* barriers, const PipelineState& state)
      : data(memory), full(barriers), empty(barriers + S.stages), stage(state.stage), parity(state.parity) {}
  CERMET_DEVICE PipelineState state() const { return {stage, parity}; }
  CERMET_DEVICE char* next() const { return data + stage * S.stage_bytes; }

  /// By one thread, before a barrier of all.
  CERMET_DEVICE void init() const {
#pragma unroll
    for (int s = 0; s < S.stages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], S.consumers);
    }
    ptx::fence_mbarrier_init();
  }

  CERMET_DEVICE void advance() {
    if (++stage == S.stages) stage = 0, parity ^= 1;
  }

  /// Producer: waits until the next stage is empty, and bytes of earlier ones have come. What is on its way beyond what
  /// the memory needs to be busy only makes the queue longer, in which all other accesses wait, too.
  CERMET_DEVICE void wait_for_room() {
    ptx::mbarrier_wait(&empty[stage], parity ^ 1);
    if constexpr (S.in_flight > 0 && S.in_flight < S.stages) {
      const bool wraps = stage < S.in_flight;
      ptx::mbarrier_wait(&full[wraps ? stage + S.stages - S.in_flight : stage - S.in_flight],
                         wraps ? parity ^ 1 : parity);
    }
  }

  /// Consumer warp: the next stage once it is full, and done with it.
  CERMET_DEVICE const char* wait() const {
    ptx::mbarrier_wait(&full[stage], parity);
    return next();
  }
  CERMET_DEVICE void release() {
    __syncwarp();
    if (lane_index() == 0) ptx::mbarrier_arrive(&empty[stage]);
    advance();
  }
};

/// The producer's copies of rows that are not 16-byte aligned, in units of elements.
template <int ElementBytes>
CERMET_DEVICE void copy_elements(char* to, int to_stride, const char* from, int64_t stride, int rows, int bytes) {
  using Unit = Unsigned<ElementBytes>;
#pragma unroll 1
  for (int r = 0; r < rows; ++r)
#pragma unroll 4
    for (int i = static_cast<int>(lane_index()); i < bytes / ElementBytes; i += 32)
      reinterpret_cast<Unit*>(to + r * to_stride)[i] = reinterpret_cast<const Unit*>(from + r * stride)[i];
}

/// Sets up the barriers of a body's ring: by the producer, before a barrier of all.
template <class Body>
CERMET_DEVICE void init_ring(char* smem, const PipelineState& at) {
  const typename Body::Memory memory(smem);
  if (lane_index() == 0) typename Body::WeightPipeline(memory.ring, memory.barriers, at).init();
  __syncwarp();
}
/// Ends them, behind a block's last item.
template <class Body, class Team>
CERMET_DEVICE void end_ring(Team team, char* smem) {
  ptx::end_barriers(team, typename Body::Memory(smem).barriers, 2 * Body::pipeline_shape.stages);
}
#endif

/// A task's pipeline, of whose stages it needs so many bytes: of its own, or through the ring that all tasks of a walk
/// share (StreamTeam).
template <class Team, int StageBytes>
constexpr PipelineShape in_ring_of(PipelineShape shape) {
  if constexpr (requires { Team::ring_stages; }) {
    static_assert(Team::ring_pitch >= StageBytes);
    return {Team::ring_stages, Team::ring_pitch, shape.consumers, Team::ring_in_flight};
  }
  return shape;
}

}  // namespace gemv

/// Of a warp in a walk: the next stage, and which of two areas the next sums go to. It lives on from task to task.
struct StreamState {
  gemv::PipelineState stages;
  int buffer = 0;
  uint32_t rows = 0;  ///< stages of rows that its set of warps has multiplied
};

}  // namespace cermet
