// Bulk copies of contiguous bytes from global to shared memory (sm_90 on). Addresses and sizes are multiples of 16;
// 128-byte aligned rows go fastest.
#pragma once

#include "kernel/cuda/device/ptx/address.cuh"
#include "kernel/cuda/device/types.cuh"

#if CERMET_ARCH >= 900
namespace cermet::ptx {

/// How the L2 treats what is read once: first to go.
CERMET_DEVICE uint64_t evict_first_policy() {
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

/// One thread copies; the bytes arrive at the barrier.
CERMET_DEVICE void bulk_copy(void* shared, const void* global, int bytes, uint64_t* barrier, uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
          "r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier)), "l"(policy)
      : "memory");
}

}  // namespace cermet::ptx
#endif
