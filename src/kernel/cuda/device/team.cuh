// The threads that run a task: a whole block, or some neighbouring warps of one. A task's body knows its team and nothing of the block, the grid or the
// other tasks in them: threadIdx, blockIdx, gridDim, __syncthreads and numbers of barriers appear here and where tasks are entered, nowhere else.
//
// A team is an empty value with these members; size is a multiple of 32.
//   size, warps, cluster         numbers
//   rank(), warp()               of this thread, and of its warp; lane_index() is its place in the warp
//   contains_this_thread()       for the caller, who keeps other threads out
//   sync()                       waits for all threads of the team; what they wrote before is visible after
//   any(condition)               the same, and whether the condition holds in some thread
//   sync_part(part, threads)     among `threads` threads (whole warps) that agree on a part, 0 .. parts - 1
//   cluster_rank()               of the team's block in its cluster; 0 without one
//   together                     whether all items of the launch run at the same time, each in a block of its own, where the host launches no more than are
//                                resident: one may wait for another then, which nobody may otherwise
#pragma once

#include "kernel/cuda/device/ptx/barrier.cuh"

namespace cermet {

/// Place of this thread in its warp: that in the block, too, because every team begins with a whole warp.
__device__ __forceinline__ uint32_t lane_index() { return threadIdx.x % 32; }

/// All threads of a block of `Size`, which may be one of the blocks of a cluster.
template <int Size, int Cluster = 1, bool Together = true>
struct BlockTeam {
  static_assert(Size % 32 == 0 && Size > 0 && Size <= 1024);
  static constexpr int size = Size, warps = Size / 32, cluster = Cluster, parts = 15;
  static constexpr bool together = Together;

  static __device__ __forceinline__ uint32_t rank() { return threadIdx.x; }
  static __device__ __forceinline__ uint32_t warp() { return threadIdx.x / 32; }
  static __device__ __forceinline__ uint32_t cluster_rank() { return Cluster == 1 ? 0 : blockIdx.x % Cluster; }
  static __device__ __forceinline__ bool contains_this_thread() { return true; }
  static __device__ __forceinline__ void sync() { __syncthreads(); }
  static __device__ __forceinline__ bool any(bool condition) { return __syncthreads_or(condition) != 0; }
  static __device__ __forceinline__ void sync_part(int part, int threads) { ptx::named_barrier(1 + part, threads); }
};

/// `Size` threads of a wider block, from thread `First` on. Barriers from number `Barrier` on are the team's alone: its own, then those of its parts.
template <int Size, int First = 0, int Barrier = 1>
struct PartTeam {
  static_assert(Size % 32 == 0 && Size > 0 && First % 32 == 0 && Barrier >= 1 && Barrier <= 15);
  static constexpr int size = Size, warps = Size / 32, cluster = 1, parts = 15 - Barrier;
  static constexpr bool together = false;

  static __device__ __forceinline__ uint32_t rank() { return threadIdx.x - First; }
  static __device__ __forceinline__ uint32_t warp() { return threadIdx.x / 32 - First / 32; }
  static __device__ __forceinline__ uint32_t cluster_rank() { return 0; }
  static __device__ __forceinline__ bool contains_this_thread() { return threadIdx.x - First < Size; }
  static __device__ __forceinline__ void sync() { ptx::named_barrier(Barrier, Size); }
  static __device__ __forceinline__ bool any(bool condition) { return ptx::named_barrier_or(Barrier, Size, condition); }
  static __device__ __forceinline__ void sync_part(int part, int threads) { ptx::named_barrier(Barrier + 1 + part, threads); }
};

}  // namespace cermet
