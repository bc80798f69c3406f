// Moves registers between warpgroups (sm_90a). Takes effect only where the kernel's launch bounds cap registers at entry; every warp of a warpgroup
// executes it.
#pragma once

#include "kernel/cuda/device/types.cuh"

#if CERMET_ARCH >= 900
namespace cermet::ptx {

/// Gives registers back; `Count` is a multiple of 8 from 24 to 256.
template <int Count>
__device__ __forceinline__ void setmaxnreg_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}

/// Waits until the block has them.
template <int Count>
__device__ __forceinline__ void setmaxnreg_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

}  // namespace cermet::ptx
#endif
