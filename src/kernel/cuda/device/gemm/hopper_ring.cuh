// The ring of stages in shared memory between the producer of the Hopper GEMM and its consumers.
#pragma once

#include "kernel/cuda/device/gemm/epilogue.cuh"
#include "kernel/cuda/device/gemm/hopper_tile.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"

namespace cermet::gemm {

/// The stages' barriers, and how many stages the block's tiles have taken so far.
template <HopperConfig C, HopperShape S>
struct HopperRing {
  static constexpr int a_bytes = C.block_m * HopperShape::tile_row, b_bytes = C.block_n * HopperShape::tile_row;

  struct Shared {
    char* ring;  // [stages][a tiles, b tiles]
    char* staging;
    char* columns;  // [consumers] of what ColumnPlan says
    uint64_t *full, *empty;

    __device__ explicit Shared(char* smem)
        : ring(smem), staging(ring + C.stages * S.stage_bytes()), columns(staging + S.staging_bytes()) {
      full = reinterpret_cast<uint64_t*>(columns + S.consumers() * S.column_bytes());
      empty = full + C.stages;
    }
    __device__ char* a(int stage, int part) const { return ring + stage * S.stage_bytes() + part * a_bytes; }
    __device__ char* b(int stage, int part) const { return a(stage, C.a_parts) + part * b_bytes; }
  };

  /// Place in the ring: counts on over all tiles of the block, so that barrier phases follow from it.
  struct Slot {
    int stage;
    uint32_t phase;
    __device__ explicit Slot(uint32_t iteration)
        : stage(static_cast<int>(iteration % C.stages)), phase(iteration / C.stages & 1) {}
    __device__ void advance() {
      if (++stage == C.stages) stage = 0, phase ^= 1;
    }
  };

  uint32_t stages = 0;
  bool is_open = false;  ///< whether all threads know that the barriers are set up

  template <class Team>
  CERMET_DEVICE HopperRing(const HopperParams& p, Team team, char* smem) {
    static_assert(Team::size == S.threads());
    if (team.rank() != S.consumers() * 128)
      return;  // the warp that will fill the ring; others read parameters meanwhile
    const Shared shared(smem);
    for (int i = 0; i < C.stages; ++i) {
      ptx::mbarrier_init(shared.full + i, 1);
      ptx::mbarrier_init(shared.empty + i, S.consumers() * 4);
    }
    ptx::fence_mbarrier_init();
    ptx::prefetch_tensor_map(&p.a);
    ptx::prefetch_tensor_map(&p.b);
    if constexpr (C.dual) ptx::prefetch_tensor_map(&p.b_up);
    ptx::fence_async_shared();
  }
  template <class Team>
  CERMET_DEVICE void close(const HopperParams&, Team team, char* smem) {
    wait_for_rows();
    ptx::end_barriers(team, Shared(smem).full, 2 * C.stages);
  }
};

}  // namespace cermet::gemm
