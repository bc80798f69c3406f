// A group works on one row: a team, or the teams of a cluster's blocks. Exact integers only, so the order in which they
// meet does not matter.
#pragma once

#include "kernel/cuda/device/ptx/cluster.cuh"
#include "kernel/cuda/device/team.cuh"

namespace cermet {

struct SumU64 {
  static CERMET_DEVICE uint64_t combine(uint64_t a, uint64_t b) { return a + b; }
};
struct MaxU64 {
  static CERMET_DEVICE uint64_t combine(uint64_t a, uint64_t b) { return a > b ? a : b; }
};

template <class Reduction>
CERMET_DEVICE uint64_t warp_reduce_u64(uint64_t x) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x = Reduction::combine(x, __shfl_xor_sync(0xffffffffu, x, offset));
  return x;
}

/// Sum over this lane and those below.
CERMET_DEVICE uint64_t warp_scan_u64(uint64_t x) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const uint64_t y = __shfl_up_sync(0xffffffffu, x, offset);
    if (static_cast<int>(lane_index()) >= offset) x += y;
  }
  return x;
}

/// Shared memory of a group's exchanges.
struct GroupScratch {
  uint64_t warp[32];
  uint64_t slot[2];  ///< what this team sends the others; two take turns, so that one barrier separates writing from
                     ///< the last reading
};

/// All threads of the team, in each block of its cluster. Every member function is called by all of them, in the same
/// order.
template <class Team>
class Group {
 public:
  static constexpr int warps = Team::warps, cluster = Team::cluster;

  __device__ Group(Team, GroupScratch& scratch) : scratch_(scratch) {}

  static __device__ uint32_t rank() {
    if constexpr (cluster > 1) return ptx::cluster_rank();
    else return 0;
  }
  /// Waits for all threads of the group.
  static __device__ void barrier() {
    if constexpr (cluster > 1) ptx::cluster_barrier();
    else Team::sync();
  }

  /// What block `from` holds at the place that corresponds to `own`.
  static __device__ uint64_t read(const uint64_t* own, uint32_t from) {
    if constexpr (cluster > 1) return ptx::load_cluster_u64(ptx::cluster_address(own, from));
    else return *own;
  }
  static __device__ uint32_t read(const uint32_t* own, uint32_t from) {
    if constexpr (cluster > 1) return ptx::load_cluster_u32(ptx::cluster_address(own, from));
    else return *own;
  }

  /// Over the threads of the team; every thread gets it.
  template <class Reduction>
  __device__ uint64_t block_reduce(uint64_t x) {
    x = warp_reduce_u64<Reduction>(x);
    if constexpr (warps == 1) return x;
    Team::sync();
    if (lane_index() == 0) scratch_.warp[Team::warp()] = x;
    Team::sync();
    return warp_reduce_u64<Reduction>(lane_index() < warps ? scratch_.warp[lane_index()] : 0);
  }

  /// Over all threads of the group; 0 is the identity of both reductions.
  template <class Reduction>
  __device__ uint64_t reduce(uint64_t x) {
    x = block_reduce<Reduction>(x);
    if constexpr (cluster == 1) return x;
    const uint64_t* slot = publish(x);
    uint64_t all = 0;
#pragma unroll
    for (uint32_t r = 0; r < cluster; ++r) all = Reduction::combine(all, read(slot, r));
    return all;
  }

  /// Gives a number of this team to the others, who then read it from the place that is returned.
  __device__ const uint64_t* publish(uint64_t x) {
    uint64_t* slot = &scratch_.slot[turn_];
    turn_ ^= 1;
    if (Team::rank() == 0) *slot = x;
    barrier();
    return slot;
  }

  /// Sum over the threads of the team before this one; `total` is that of all.
  __device__ uint64_t block_scan(uint64_t x, uint64_t& total) {
    const uint64_t inclusive = warp_scan_u64(x);
    Team::sync();
    if (lane_index() == 31) scratch_.warp[Team::warp()] = inclusive;
    Team::sync();
    const uint64_t sums = warp_scan_u64(lane_index() < warps ? scratch_.warp[lane_index()] : 0);
    const uint64_t before = __shfl_sync(0xffffffffu, sums, max_of(static_cast<int>(Team::warp()) - 1, 0));
    total = __shfl_sync(0xffffffffu, sums, warps - 1);
    return (Team::rank() < 32 ? 0 : before) + inclusive - x;
  }

 private:
  GroupScratch& scratch_;
  int turn_ = 0;
};

}  // namespace cermet
