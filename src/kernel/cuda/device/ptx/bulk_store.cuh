// Bulk copies of contiguous bytes from shared to global memory (sm_90 on): addresses and size are multiples of 16. A
// thread's copies complete in groups.
#pragma once

#include "kernel/cuda/device/ptx/address.cuh"
#include "kernel/cuda/device/types.cuh"

#if CERMET_ARCH >= 900
namespace cermet::ptx {

/// Issued by one thread. What ordinary stores wrote to the shared bytes needs a fence.proxy.async before.
CERMET_DEVICE void bulk_store(void* global, const void* shared, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(shared_address(shared)),
               "r"(bytes)
               : "memory");
}

/// Closes the group of this thread's stores since the last call.
CERMET_DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/// Waits until at most `Pending` of this thread's latest groups still read shared memory, which may be overwritten
/// then.
template <int Pending>
CERMET_DEVICE void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

/// Waits until at most `Pending` of this thread's latest groups are unfinished.
template <int Pending>
CERMET_DEVICE void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace cermet::ptx
#endif
