// How fast memory streams: read, or copied, with 16-byte accesses or with bulk asynchronous copies. Work item i is the
// i-th of p.blocks blocks.
#pragma once

#include "kernel/cuda/device/limits/limits.hpp"
#include "kernel/cuda/device/ptx/bulk.cuh"
#include "kernel/cuda/device/ptx/bulk_store.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/types.cuh"

namespace cermet::limits {

struct LoadConfig {
  int threads;
  int unroll;  ///< loads of 16 bytes in flight a thread
  bool copy;
};

/// Registers: a block takes threads * unroll * 16 contiguous bytes at a time, and the blocks take turns.
template <LoadConfig C>
struct LoadTask {
  using Params = StreamParams;
  using Word = Vector<uint32_t, 4>;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t words = p.bytes / 16;
    const Word* from = static_cast<const Word*>(p.from);
    uint32_t seen = 0;
    constexpr int step = C.threads * C.unroll;
    for (int64_t at = int64_t{item} * step + team.rank(); at < words; at += int64_t{p.blocks} * step) {
      Word word[C.unroll];
#pragma unroll
      for (int i = 0; i < C.unroll; ++i) word[i] = from[at + i * C.threads];
#pragma unroll
      for (int i = 0; i < C.unroll; ++i) {
        if constexpr (C.copy) static_cast<Word*>(p.to)[at + i * C.threads] = word[i];
        else seen ^= word[i][0] ^ word[i][1] ^ word[i][2] ^ word[i][3];
      }
    }
    if (!C.copy && seen == p.never) *static_cast<uint32_t*>(p.to) = seen;
  }
};

struct BulkConfig {
  int stage_bytes, stages;  ///< a ring in shared memory
  bool copy;
};

/// One thread of a block keeps a ring of bulk copies in flight; nothing passes through registers.
template <BulkConfig C>
struct BulkTask {
  using Params = StreamParams;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
#if CERMET_ARCH >= 900
    if (team.rank() != 0) return;
    auto* full = reinterpret_cast<uint64_t*>(smem + C.stages * C.stage_bytes);  // [stages]
    for (int i = 0; i < C.stages; ++i) ptx::mbarrier_init(&full[i], 1);
    ptx::fence_mbarrier_init();
    const auto pieces = static_cast<int>(p.bytes / C.stage_bytes), first = static_cast<int>(item),
               blocks = static_cast<int>(p.blocks);
    const char* from = static_cast<const char*>(p.from);
    int piece = first, stage = 0;  // the next to load, and where to
    const auto load = [&] {
      if (piece >= pieces) return;
      ptx::mbarrier_arrive_expect(&full[stage], C.stage_bytes);
      ptx::bulk_load(smem + stage * C.stage_bytes, from + int64_t{piece} * C.stage_bytes, C.stage_bytes, &full[stage]);
      piece += blocks;
      stage = stage + 1 == C.stages ? 0 : stage + 1;
    };
    constexpr int behind = C.copy ? C.stages / 2 : 0;  // stages that stores may still read when a later one is loaded
    for (int s = 0; s < C.stages - behind; ++s) load();
    int s = 0;
    uint32_t parity = 0;
    for (int at = first; at < pieces; at += blocks) {
      ptx::mbarrier_wait(&full[s], parity);
      if constexpr (C.copy) {
        ptx::bulk_store(static_cast<char*>(p.to) + int64_t{at} * C.stage_bytes, smem + s * C.stage_bytes,
                        C.stage_bytes);
        ptx::bulk_commit();
        ptx::bulk_wait_read<behind>();
      }
      load();
      if (++s == C.stages) {
        s = 0;
        parity ^= 1u;
      }
    }
    if constexpr (C.copy) ptx::bulk_wait<0>();
#endif
  }
};

/// Nothing: what a launch costs.
struct NothingTask {
  using Params = NothingParams;
  template <class Team>
  static __device__ void run(const Params&, uint32_t, Team, char*) {}
};

}  // namespace cermet::limits
