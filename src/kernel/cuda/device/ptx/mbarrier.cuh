// Barriers in shared memory that count arrivals of threads and bytes of bulk copies (sm_90 on). A phase completes when
// both counts are met; waiting names the parity of the phase: a fresh barrier is in phase 0, and waiting for parity 1
// passes at once.
#pragma once

#include "kernel/cuda/device/ptx/address.cuh"
#include "kernel/cuda/device/team.cuh"

#if CERMET_ARCH >= 900
namespace cermet::ptx {

CERMET_DEVICE void mbarrier_init(uint64_t* barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

/// Ends a barrier, whose memory may hold something else from then on. The words of one that was not ended were seen to
/// come back in place of what bulk copies had written there since, where other processes used the GPU, too.
CERMET_DEVICE void mbarrier_inval(uint64_t* barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/// Ends `count` barriers that no thread waits for any more, where other tasks use their memory next (walk.cuh). By a
/// whole team.
template <class Team>
CERMET_DEVICE void end_barriers([[maybe_unused]] Team team, [[maybe_unused]] uint64_t* barriers,
                                [[maybe_unused]] int count) {
  if constexpr (in_walk) {
    team.sync();
    if (static_cast<int>(team.rank()) < count) mbarrier_inval(barriers + team.rank());
  }
}

/// Makes the barriers that this thread initialised known to bulk copies and to the other blocks of the cluster (before
/// a barrier of the threads).
CERMET_DEVICE void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

CERMET_DEVICE void mbarrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/// One arrival of a whole warp.
CERMET_DEVICE void mbarrier_arrive_warp(uint64_t* barrier) {
  __syncwarp();
  if (lane_index() == 0) mbarrier_arrive(barrier);
}

/// One arrival at a barrier of any of the cluster's blocks, by its address in the cluster's window. It orders no
/// accesses to global memory of other blocks, for which the scope `cluster` would wait.
CERMET_DEVICE void mbarrier_arrive_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// One arrival that also announces bytes of bulk copies.
CERMET_DEVICE void mbarrier_arrive_expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

/// Announces bytes of bulk copies without an arrival.
CERMET_DEVICE void mbarrier_expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

/// Waits for the phase of this parity; then sees what its arrivals released and its copies wrote.
CERMET_DEVICE void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n .reg .pred done;\nwait:\n mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n @done bra end;\n bra "
      "wait;\nend:\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

/// As mbarrier_wait where blocks of the cluster arrive, too.
CERMET_DEVICE void mbarrier_wait_cluster(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n .reg .pred done;\nwait:\n mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n @done "
      "bra end;\n bra wait;\nend:\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

/// Position in a ring of `Stages` with barriers: counts on over all items of a block, so that their phases follow from
/// it.
template <int Stages>
struct RingSlot {
  int stage;
  uint32_t phase;
  __device__ explicit RingSlot(uint32_t iteration)
      : stage(static_cast<int>(iteration % Stages)), phase(iteration / Stages & 1) {}
  __device__ void advance(int steps = 1) {
    for (int i = 0; i < steps; ++i)
      if (++stage == Stages) stage = 0, phase ^= 1;
  }
};

}  // namespace cermet::ptx
#endif
