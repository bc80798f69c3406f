// Handing results from one SM to another within a launch, by counters in global memory: everything that a team has
// written before it announces, by ordinary stores or bulk copies, is seen by ordinary loads and bulk copies of the team
// that has waited.
#pragma once

#include "kernel/cuda/device/ptx/bulk_store.cuh"
#include "kernel/cuda/device/ptx/global.cuh"
#include "kernel/cuda/device/team.cuh"

namespace cermet {

/// Adds 1 to a counter, after all that the team wrote. All threads of the team call.
template <class Team>
CERMET_DEVICE void announce(Team team, uint32_t* counter) {
#if CERMET_ARCH >= 900
  ptx::bulk_wait<0>();  // bulk copies that this thread started: not only read from shared memory, but written
  ptx::fence_proxies();
#endif
  team.sync();
  if (team.rank() == 0) ptx::add_release(counter, 1);
}

/// Waits until counter(i) >= wanted(i) for 0 <= i < count. All threads of the team call.
template <class Team, class Counter, class Wanted>
CERMET_DEVICE void wait_for(Team team, uint32_t count, Counter&& counter, Wanted&& wanted) {
  if (count == 0) return;
  if (team.warp() == 0) {
    for (uint32_t i = lane_index(); i < count; i += 32)
      while (ptx::load_acquire(counter(i)) < wanted(i)) {
      }
#if CERMET_ARCH >= 900
    ptx::fence_proxies();  // what was written by ordinary stores, before bulk copies read it
#endif
  }
  team.sync();
}

}  // namespace cermet
