// Bulk copies of contiguous bytes from global to shared memory (sm_90 on): addresses and size are multiples of 16.
#pragma once

#include "kernel/cuda/device/ptx/address.cuh"
#include "kernel/cuda/device/types.cuh"

#if CERMET_ARCH >= 900
namespace cermet::ptx {

/// Issued by one thread; its bytes arrive at the barrier.
CERMET_DEVICE void bulk_load(void* shared, const void* global, uint32_t bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(shared)),
               "l"(global), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}

/// Orders this thread's ordinary accesses to shared memory before later bulk copies of threads that it synchronises
/// with.
CERMET_DEVICE void fence_before_bulk() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace cermet::ptx
#endif
