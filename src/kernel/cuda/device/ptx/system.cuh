// Accesses to memory that several GPUs and the host address.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet::ptx {

/// Stores after everything that this thread wrote, or saw other threads of its block write before a barrier, wherever it was written to.
__device__ __forceinline__ void store_release_system(uint32_t* to, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

/// What is read after is at least as new.
__device__ __forceinline__ uint32_t load_acquire_system(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

/// Nanoseconds of a clock that all SMs share.
__device__ __forceinline__ uint64_t nanoseconds() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

}  // namespace cermet::ptx
