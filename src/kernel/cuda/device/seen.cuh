// Results that are in the L2 before they are announced, without a fence. A fence waits for all that the SM has asked for, weights on their way included; a load of
// a result by the thread that stored it waits for the store alone: it passes by the L1, and comes back from the L2, where all SMs read the result then. PTX does
// not promise the last step; it is how GPUs of compute capability 9.0 work, the only ones on which tasks share a kernel (walk.cuh).
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

/// Stores of a thread that it has looked at again. Looks are under way until the next one, or settle().
struct Seen {
  uint32_t found = 0;

  /// Looks at bytes that this thread has stored: 1, 2, or the first 4 of more.
  template <int Bytes>
  __device__ __forceinline__ void look(const void* at) {
    settle();
    if constexpr (Bytes == 1) asm volatile("ld.relaxed.gpu.global.u8 %0, [%1];" : "=r"(found) : "l"(at) : "memory");
    else if constexpr (Bytes == 2) asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];" : "=r"(found) : "l"(at) : "memory");
    else asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(at) : "memory");
  }
  /// Until what was looked at has come. An instruction that reads it, and that no compiler takes away.
  __device__ __forceinline__ void settle() const {
    asm volatile("{\n .reg .pred rare;\n setp.eq.u32 rare, %0, 0x5ca1ab1e;\n @rare nanosleep.u32 0;\n}" ::"r"(found) : "memory");
  }
};

}  // namespace cermet
