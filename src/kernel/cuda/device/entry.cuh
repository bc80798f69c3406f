// What every compiled task has around it: the entry function of a generated source is one call of run_items.
#pragma once

#include "kernel/cuda/device/overlap.cuh"

namespace cermet {

/// Whether a task's run is two halves: start(p, item, smem), which touches only operands that no earlier task writes, and finish(p, item, smem).
template <class Task>
concept TwoHalves = requires(const typename Task::Params& p, char* smem) {
  Task::start(p, 0u, smem);
  Task::finish(p, 0u, smem);
};

/// The work items of this thread block. Where launches overlap (programmatic dependent launch, sm_90 and later), the block lets the next launch
/// start at once and touches what earlier launches write only after they have ended; what no launch writes (weights) it may fetch before:
/// Task::prefetch(p, item), where the task has one, or its first half.
template <class Task>
__device__ __forceinline__ void run_items(const typename Task::Params& p, uint32_t items, char* smem) {
#if CERMET_ARCH >= 900
  if constexpr (overlap_of<Task>() == Overlap::late) return run_items_late<Task>(p, items, smem);
  asm volatile("griddepcontrol.launch_dependents;");
  if (blockIdx.x < items) {
    if constexpr (TwoHalves<Task>) Task::start(p, blockIdx.x, smem);
    else if constexpr (requires { Task::prefetch(p, blockIdx.x); }) Task::prefetch(p, blockIdx.x);
  }
  asm volatile("griddepcontrol.wait;" ::: "memory");
#else
  if constexpr (TwoHalves<Task>)
    if (blockIdx.x < items) Task::start(p, blockIdx.x, smem);
#endif
  for (uint32_t item = blockIdx.x; item < items; item += gridDim.x) {
    if constexpr (TwoHalves<Task>) {
      if (item != blockIdx.x) {
        __syncthreads();  // the last item's shared memory
        Task::start(p, item, smem);
      }
      Task::finish(p, item, smem);
    } else {
      Task::run(p, item, smem);
    }
  }
}

}  // namespace cermet
