// Asynchronous copies of 4, 8 or 16 bytes from global to shared memory (sm_80 on; before that an ordinary load and
// store with the same result).
#pragma once

#include "kernel/cuda/device/ptx/address.cuh"
#include "kernel/cuda/device/types.cuh"

namespace cermet::ptx {

/// Copies the first `valid` of `Bytes` bytes and zeroes the rest. Both addresses are aligned to Bytes; with valid = 0
/// nothing is read. 16-byte copies bypass the L1.
template <int Bytes>
CERMET_DEVICE void cp_async(void* shared, const void* global, int valid = Bytes) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
#if CERMET_ARCH >= 800
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global), "r"(valid)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(shared)), "l"(global), "n"(Bytes),
                 "r"(valid)
                 : "memory");
#else
  union {
    Vector<uint8_t, Bytes> bytes;
    Vector<uint32_t, Bytes / 4> words;
  } value;
  if (valid == Bytes) {
    value.words = *static_cast<const Vector<uint32_t, Bytes / 4>*>(global);
  } else {
#pragma unroll
    for (int i = 0; i < Bytes; ++i) value.bytes[i] = i < valid ? static_cast<const uint8_t*>(global)[i] : uint8_t{0};
  }
  *static_cast<Vector<uint32_t, Bytes / 4>*>(shared) = value.words;
#endif
}

/// Closes the group of this thread's copies since the last call.
CERMET_DEVICE void cp_async_commit() {
#if CERMET_ARCH >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most `Pending` of this thread's latest groups are unfinished; other threads see the data after a
/// barrier.
template <int Pending>
CERMET_DEVICE void cp_async_wait() {
#if CERMET_ARCH >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

}  // namespace cermet::ptx
