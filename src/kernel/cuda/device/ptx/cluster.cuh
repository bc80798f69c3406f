// Thread block clusters (sm_90): rank, barrier, and shared memory of the cluster's other blocks.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet::ptx {

/// Rank of this block in its cluster.
CERMET_DEVICE uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// Waits for every thread of the cluster; what they wrote before is visible after.
CERMET_DEVICE void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// The two halves of the barrier: arrives, and waits for the others' arrivals. Orders no memory accesses.
CERMET_DEVICE void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
CERMET_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
/// Writes 8 bytes to another block's shared memory and counts them at its mbarrier; both addresses are of the cluster's
/// window.
CERMET_DEVICE void store_async_cluster_u64(uint32_t address, uint64_t value, uint32_t barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [%0], %1, [%2];" ::"r"(address), "l"(value),
               "r"(barrier)
               : "memory");
}

/// The same with 16 bytes.
CERMET_DEVICE void store_async_cluster(uint32_t address, const Vector<float, 4>& x, uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(address),
      "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "r"(barrier)
      : "memory");
}
CERMET_DEVICE void store_async_cluster(uint32_t address, const Vector<float, 2>& x, uint32_t barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(address),
               "f"(x[0]), "f"(x[1]), "r"(barrier)
               : "memory");
}

/// Address, in the cluster's shared window, of the place in the block `rank` that corresponds to `own`.
CERMET_DEVICE uint32_t cluster_address(const void* own, uint32_t rank) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(address)
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(own))), "r"(rank));
  return address;
}

CERMET_DEVICE uint32_t load_cluster_u32(uint32_t address) {
  uint32_t value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}
CERMET_DEVICE uint64_t load_cluster_u64(uint32_t address) {
  uint64_t value;
  asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(value) : "r"(address) : "memory");
  return value;
}
CERMET_DEVICE void store_cluster_u32(uint32_t address, uint32_t value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}
CERMET_DEVICE void store_cluster_u64(uint32_t address, uint64_t value) {
  asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(address), "l"(value) : "memory");
}
/// Adds to a counter and returns what it held.
CERMET_DEVICE uint32_t add_cluster_u32(uint32_t address, uint32_t value) {
  uint32_t old;
  asm volatile("atom.relaxed.cluster.shared::cluster.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "r"(address), "r"(value)
               : "memory");
  return old;
}

}  // namespace cermet::ptx
