// What every compiled task has around it: the entry function of a generated source is one call of run_items.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

/// Task::prefetch, where the task has one.
template <class Task>
__device__ __forceinline__ void prefetch_item(const typename Task::Params& p, uint32_t item) {
  if constexpr (requires { Task::prefetch(p, item); }) Task::prefetch(p, item);
}

/// The work items of this thread block. Where launches overlap (programmatic dependent launch, sm_90 and later), the block lets the next launch
/// start at once and touches what earlier launches write only after they have ended; what no launch writes (weights) it may fetch before.
template <class Task>
__device__ __forceinline__ void run_items(const typename Task::Params& p, uint32_t items, char* smem) {
#if CERMET_ARCH >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  if (blockIdx.x < items) prefetch_item<Task>(p, blockIdx.x);
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  for (uint32_t item = blockIdx.x; item < items; item += gridDim.x) Task::run(p, item, smem);
}

}  // namespace cermet
