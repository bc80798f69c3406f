// The threads that run a task: a whole block, or some neighbouring warps of one. A task's body knows its team and
// nothing of the block, the grid or the other tasks in them: threadIdx, blockIdx, gridDim, __syncthreads and numbers of
// barriers appear here and where tasks are entered, nowhere else.
//
// A team is an empty value with these members; size is a multiple of 32.
//   size, warps, cluster         numbers
//   rank(), warp()               of this thread, and of its warp; lane_index() is its place in the warp
//   contains_this_thread()       for the caller, who keeps other threads out
//   sync()                       waits for all threads of the team; what they wrote before is visible after
//   any(condition)               the same, and whether the condition holds in some thread
//   sync_part(part, threads)     among `threads` threads (whole warps) that agree on a part, 0 .. parts - 1
//   arrive_part(part, threads)   takes part in that without waiting, where a task has whole blocks
//   any_part(part, threads, condition)   sync_part, and whether the condition holds in some thread; there, too
//   cluster_rank()               of the team's block in its cluster; 0 without one
//   ring_stages, ring_pitch      only where the stages of streamed weights belong to all tasks of a kernel: StreamTeam
//   together                     whether all items of the launch run at the same time, each in a block of its own,
//   where the host launches no more than are
//                                resident: one may wait for another then, and only then
#pragma once

#include "kernel/cuda/device/ptx/barrier.cuh"
#include "kernel/cuda/device/types.cuh"

namespace cermet {

// All that differs in the code of a task that is part of a walk (walk.cuh), one kernel of many tasks: jit/walk.cpp
// defines CERMET_WALK for it, and nothing else looks at that.
#if defined(CERMET_WALK)
inline constexpr bool in_walk = true;

/// Place of this thread in its block: a register that the walk sets anew for each task. Otherwise all that follows from
/// the thread's index, of every task, would be computed before the walk and kept in registers.
CERMET_DEVICE uint32_t thread_index() {
  uint32_t index;
  asm volatile("mov.u32 %0, cermet_thread;" : "=r"(index));
  return index;
}
#else
inline constexpr bool in_walk = false;

/// Place of this thread in its block.
CERMET_DEVICE uint32_t thread_index() { return threadIdx.x; }
#endif

/// Place of this thread in its warp: that in the block, too, because every team begins with a whole warp.
CERMET_DEVICE uint32_t lane_index() { return thread_index() % 32; }

/// All threads of a block of `Size`, which may be one of the blocks of a cluster.
template <int Size, int Cluster = 1, bool Together = true>
struct BlockTeam {
  static_assert(Size % 32 == 0 && Size > 0 && Size <= 1024);
  static constexpr int size = Size, warps = Size / 32, cluster = Cluster, parts = 15;
  static constexpr bool together = Together;

  static CERMET_DEVICE uint32_t rank() { return thread_index(); }
  static CERMET_DEVICE uint32_t warp() { return thread_index() / 32; }
  static CERMET_DEVICE uint32_t cluster_rank() { return Cluster == 1 ? 0 : blockIdx.x % Cluster; }
  static CERMET_DEVICE bool contains_this_thread() { return true; }
  static CERMET_DEVICE void sync() { __syncthreads(); }
  static CERMET_DEVICE bool any(bool condition) { return __syncthreads_or(condition) != 0; }
  static CERMET_DEVICE void sync_part(int part, int threads) { ptx::named_barrier(1 + part, threads); }
  static CERMET_DEVICE void arrive_part(int part, int threads) { ptx::named_barrier_arrive(1 + part, threads); }
  static CERMET_DEVICE bool any_part(int part, int threads, bool condition) {
    return ptx::named_barrier_or(1 + part, threads, condition);
  }
};

/// `Size` threads of a wider block, from thread `First` on. Barriers from number `Barrier` on are the team's alone: its
/// own, then those of its parts.
template <int Size, int First = 0, int Barrier = 1>
struct PartTeam {
  static_assert(Size % 32 == 0 && Size > 0 && First % 32 == 0 && Barrier >= 1 && Barrier <= 15);
  static constexpr int size = Size, warps = Size / 32, cluster = 1, parts = 15 - Barrier;
  static constexpr bool together = false;

  static CERMET_DEVICE uint32_t rank() { return thread_index() - First; }
  static CERMET_DEVICE uint32_t warp() { return thread_index() / 32 - First / 32; }
  static CERMET_DEVICE uint32_t cluster_rank() { return 0; }
  static CERMET_DEVICE bool contains_this_thread() { return thread_index() - First < Size; }
  static CERMET_DEVICE void sync() { ptx::named_barrier(Barrier, Size); }
  static CERMET_DEVICE bool any(bool condition) { return ptx::named_barrier_or(Barrier, Size, condition); }
  static CERMET_DEVICE void sync_part(int part, int threads) { ptx::named_barrier(Barrier + 1 + part, threads); }
};

/// What a task whose last warp streams weights is given where many tasks follow each other in a kernel (walk.cuh): a
/// ring of `Stages` stages, `Pitch` bytes apart, of which at most `InFlight` are on their way; it lies before the
/// task's own shared memory and belongs to all of them. sync() is for the warps that multiply; the last one is ahead of
/// them, by tasks even. Barriers from number `Barrier` on are the team's.
template <int Size, int Stages, int Pitch, int InFlight, int Barrier = 2>
struct StreamTeam {
  static_assert(Size % 32 == 0 && Size > 32 && Size <= 1024 && Pitch % 128 == 0);
  static constexpr int size = Size, warps = Size / 32, cluster = 1, parts = 15 - Barrier;
  static constexpr bool together = false;
  static constexpr int ring_stages = Stages, ring_pitch = Pitch, ring_in_flight = InFlight;
  static constexpr int control_bytes = 1024;  ///< before the ring; they begin with its barriers: full ones, empty ones

  static CERMET_DEVICE uint32_t rank() { return thread_index(); }
  static CERMET_DEVICE uint32_t warp() { return thread_index() / 32; }
  static CERMET_DEVICE uint32_t cluster_rank() { return 0; }
  static CERMET_DEVICE bool contains_this_thread() { return thread_index() < Size; }
  /// `smem`: the task's own.
  static CERMET_DEVICE char* ring(char* smem) { return smem - Stages * Pitch; }
  static CERMET_DEVICE uint64_t* barriers(char* smem) {
    return reinterpret_cast<uint64_t*>(ring(smem) - control_bytes);
  }
  static CERMET_DEVICE void sync() { ptx::named_barrier(Barrier, Size - 32); }
  static CERMET_DEVICE void sync_part(int part, int threads) { ptx::named_barrier(Barrier + 1 + part, threads); }
};

}  // namespace cermet
