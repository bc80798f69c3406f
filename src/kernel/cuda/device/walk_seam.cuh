// All that differs in the code of a task that is part of a walk (walk.cuh), one kernel of many tasks: jit/walk.cpp
// defines CERMET_WALK for it, and no other header looks at that.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

#if defined(CERMET_WALK)
inline constexpr bool in_walk = true;

/// Place of this thread in its block: a register that the walk sets anew for each task. Otherwise all that follows from
/// the thread's index, of every task, would be computed before the walk and kept in registers.
CERMET_DEVICE uint32_t thread_index() {
  uint32_t index;
  asm volatile("mov.u32 %0, cermet_thread;" : "=r"(index));
  return index;
}
#else
inline constexpr bool in_walk = false;

/// Place of this thread in its block.
CERMET_DEVICE uint32_t thread_index() { return threadIdx.x; }
#endif

}  // namespace cermet
