// Accesses to global memory that threads of different blocks of a launch exchange data with.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet::ptx {

/// Stores after everything that this thread wrote, or saw other threads of its block write before a barrier.
CERMET_DEVICE void store_release(uint64_t* to, uint64_t value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

/// What is read after is at least as new.
CERMET_DEVICE uint64_t load_acquire(const uint64_t* from) {
  uint64_t value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

/// The same for a counter: adds to it.
CERMET_DEVICE void add_release(uint32_t* to, uint32_t value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
CERMET_DEVICE uint32_t load_acquire(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

/// From the L2, unordered with other accesses: no wait before it is used.
CERMET_DEVICE uint32_t load_relaxed(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

/// Puts what this thread stored before it ahead of what it reads after it, in one order of all such fences of the GPU.
CERMET_DEVICE void fence_sequential() { asm volatile("fence.sc.gpu;" ::: "memory"); }

/// Brings a line to the L1 without waiting for it.
CERMET_DEVICE void touch(const void* from) {
  asm volatile("{\n .reg .b32 unused;\n ld.global.ca.b32 unused, [%0];\n}" ::"l"(from));
}

/// Reads what another launch may write meanwhile: from the L2, so that no L1 keeps the old value.
CERMET_DEVICE int32_t load_l2(const int32_t* from) {
  int32_t value;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

#if CERMET_ARCH >= 900
/// Orders ordinary accesses and those of bulk copies, to any memory, before and after it.
CERMET_DEVICE void fence_proxies() { asm volatile("fence.proxy.async;" ::: "memory"); }

/// Brings bytes (a multiple of 16, as is the address) to the L2 without waiting for them.
CERMET_DEVICE void prefetch_l2(const void* from, uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}
#endif

}  // namespace cermet::ptx
