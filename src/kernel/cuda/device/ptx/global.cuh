// Accesses to global memory that threads of different blocks of a launch exchange data with.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet::ptx {

/// Stores after everything that this thread wrote, or saw other threads of its block write before a barrier.
__device__ __forceinline__ void store_release(uint64_t* to, uint64_t value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

/// What is read after is at least as new.
__device__ __forceinline__ uint64_t load_acquire(const uint64_t* from) {
  uint64_t value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

/// Brings a line to the L1 without waiting for it.
__device__ __forceinline__ void touch(const int32_t* from) { asm volatile("{\n .reg .s32 unused;\n ld.global.ca.s32 unused, [%0];\n}" ::"l"(from)); }

}  // namespace cermet::ptx
