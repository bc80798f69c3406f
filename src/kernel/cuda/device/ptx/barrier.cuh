// Barriers among some of a block's threads, registers of a warpgroup, and one thread of a warp.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet::ptx {

/// Barrier number `id` (1 to 15; 0 is __syncthreads) among `threads` threads, a multiple of 32.
CERMET_DEVICE void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Arrives at the barrier without waiting.
CERMET_DEVICE void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// As named_barrier, and whether the condition holds in some thread. Threads of a warp may come here apart, from loops
/// of unlike length: the instruction takes whole warps, and the compiler may otherwise have two of it.
CERMET_DEVICE bool named_barrier_or(int id, int threads, bool condition) {
  __syncwarp();
  uint32_t any;
  asm volatile("{\n .reg .pred p, q;\n setp.ne.u32 p, %3, 0;\n bar.red.or.pred q, %1, %2, p;\n selp.u32 %0, 1, 0, q;\n}"
               : "=r"(any)
               : "r"(id), "r"(threads), "r"(static_cast<uint32_t>(condition))
               : "memory");
  return any != 0;
}

#if CERMET_ARCH >= 900
/// Registers of a thread from here on, a multiple of 8; all warps of a warpgroup call it. More waits until others of
/// the block have given as many back.
template <int Count>
CERMET_DEVICE void give_registers_back() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}
template <int Count>
CERMET_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

/// True in one lane of a converged warp.
CERMET_DEVICE bool elect_one() {
  uint32_t chosen;
  asm volatile("{\n .reg .pred p;\n elect.sync _|p, 0xffffffff;\n selp.u32 %0, 1, 0, p;\n}" : "=r"(chosen));
  return chosen != 0;
}
#endif

}  // namespace cermet::ptx
