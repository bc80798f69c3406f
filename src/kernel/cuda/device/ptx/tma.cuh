// Bulk copies between global and shared memory (sm_90 on). Coordinates of tensor copies are (column, row) of a tile's
// first element; what lies outside the tensor arrives as zeros and counts as copied.
#pragma once

#include "kernel/cuda/device/ptx/address.cuh"
#include "kernel/cuda/device/ptx/bulk_store.cuh"
#include "kernel/cuda/device/tensor_map.hpp"
#include "kernel/cuda/device/types.cuh"

#if CERMET_ARCH >= 900
namespace cermet::ptx {

CERMET_DEVICE void prefetch_tensor_map(const TensorMapBytes* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/// Before this thread's copies read a map that lies in device memory, where the host has written it.
CERMET_DEVICE void acquire_tensor_map(const TensorMapBytes* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.sys [%0], 128;" ::"l"(map) : "memory");
}

/// One thread copies a tile to shared memory (128-byte aligned, 1024 where swizzled); its bytes arrive at the barrier.
CERMET_DEVICE void tma_load_2d(void* shared, const TensorMapBytes* map, int column, int row, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(shared_address(shared)),
      "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier))
      : "memory");
}

/// The same of matrices: `inner` and `outer` count them.
CERMET_DEVICE void tma_load_4d(void* shared, const TensorMapBytes* map, int column, int row, int inner, int outer,
                               uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(shared_address(shared)),
      "l"(map), "r"(column), "r"(row), "r"(inner), "r"(outer), "r"(shared_address(barrier))
      : "memory");
}

/// Brings the same tile to the L2 without waiting for it.
CERMET_DEVICE void tma_prefetch_4d(const TensorMapBytes* map, int column, int row, int inner, int outer) {
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" ::"l"(map), "r"(column),
               "r"(row), "r"(inner), "r"(outer)
               : "memory");
}

/// The same copy to the same place in each block of the cluster that is in `blocks`, where its barrier counts the
/// bytes.
CERMET_DEVICE void tma_load_4d_multicast(void* shared, const TensorMapBytes* map, int column, int row, int inner,
                                         int outer, uint64_t* barrier, int blocks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
      "{%2, %3, %4, %5}], [%6], %7;" ::"r"(shared_address(shared)),
      "l"(map), "r"(column), "r"(row), "r"(inner), "r"(outer), "r"(shared_address(barrier)),
      "h"(static_cast<uint16_t>(blocks))
      : "memory");
}

/// Channels `channel`.. of the pixels of as many neighbouring windows as the map says, the first of which stands at (w,
/// h) of a sample, at the tap (tap_w, tap_h) from a window's first. Windows go on in the next row, and in the next
/// sample.
CERMET_DEVICE void tma_load_windows(void* shared, const TensorMapBytes* map, int channel, int w, int h, int sample,
                                    int tap_w, int tap_h, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
      "%5}], [%6], {%7, %8};" ::"r"(shared_address(shared)),
      "l"(map), "r"(channel), "r"(w), "r"(h), "r"(sample), "r"(shared_address(barrier)),
      "h"(static_cast<uint16_t>(tap_w)), "h"(static_cast<uint16_t>(tap_h))
      : "memory");
}

/// Copies a tile from shared to global memory; what lies outside the tensor is left out. Part of this thread's current
/// group of bulk stores.
CERMET_DEVICE void tma_store_2d(const void* shared, const TensorMapBytes* map, int column, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
               "r"(column), "r"(row), "r"(shared_address(shared))
               : "memory");
}

/// Orders this thread's ordinary accesses to shared memory before later bulk copies and wgmma of threads that it
/// synchronises with.
CERMET_DEVICE void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace cermet::ptx
#endif
