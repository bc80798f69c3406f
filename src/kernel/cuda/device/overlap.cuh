// When the launch after a task's may start (sm_90 and later, where launches overlap).
#pragma once

#include "kernel/cuda/device/task.cuh"

namespace cermet {

/// Task::overlap.
enum class Overlap : uint8_t {
  early,  ///< at once: it may fetch its weights meanwhile, but so may the launch after it, and whole chains wait on the
          ///< same SMs
  late,   ///< when the launches before the task's have ended, so that one launch waits and no more
  own,    ///< when every block has called start_next_launch(): after it stored what the next launch may read while it
          ///< waits, or once it needs no more SMs for itself
};

/// Task::overlap; early where a task has none.
template <class Task>
__host__ __device__ constexpr Overlap overlap_of() {
  if constexpr (requires { Task::overlap; }) return Task::overlap;
  else return Overlap::early;
}

/// For good: what those stored is there then.
CERMET_DEVICE void wait_for_earlier_launches() {
#if CERMET_ARCH >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// By any thread of a block.
CERMET_DEVICE void start_next_launch() {
#if CERMET_ARCH >= 900
  if constexpr (!in_walk)  // whose next task is no launch
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#if CERMET_ARCH >= 900
/// The work items of this thread block where the next launch starts late. The wait is within the loop, so that the
/// compiler takes what no item changes (parameters, which are far away at first, and what follows from them) out of the
/// loop and before the wait.
template <class Task, class Team>
CERMET_DEVICE void run_items_late(const typename Task::Params& p, uint32_t items, Team team, char* smem) {
  using Call = TaskCall<Task, Team>;
  static_assert(!Call::halves && !Call::keeps_ring);
  NoRing ring(p, team, smem);
  uint32_t item = blockIdx.x;
  asm volatile("" ::"r"(team.rank()));  // read before the wait, too, which the compiler would rather do after it
#pragma unroll 1
  while (true) {
    if (item == blockIdx.x) {
      wait_for_earlier_launches();
      start_next_launch();
    }
    if (item >= items) return;
    Call::compute(p, item, team, smem, ring);
    item += gridDim.x;
  }
}
#endif

}  // namespace cermet
