// Matrix products of few rows (stream.cuh) in a walk (walk.cuh). The last warp feeds weights into the ring of all
// tasks, ahead of the others; tokens, which earlier tasks write, come through a small ring for each of two warpgroups,
// which take stages in turn: a thread of theirs asks for them. The order of sums is that of a launch of its own.
#pragma once

#include "kernel/cuda/device/gemm/stream.hpp"
#include "kernel/cuda/device/gemv/pipeline.cuh"
#include "kernel/cuda/device/ptx/global.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"

#if CERMET_ARCH >= 900
namespace cermet::gemm {

template <class Task, class Team>
struct StreamWalk {
  using Params = typename Task::Params;
  using Sum = typename Task::Sum;
  static constexpr StreamShape shape = Task::shape;
  static constexpr int sets = stream::row_sets, k_tiles = Task::k_tiles, stage_bytes = shape.weight_stage_bytes(),
                       slot_bytes = shape.token_stage_bytes();
  static constexpr int multiplying = Team::size - 32;
  static_assert(shape.can_walk() && multiplying == 32 * stream::row_warps * sets);

  /// As many bytes on their way as with the largest stages that the ring has.
  static constexpr gemv::PipelineShape ring_shape = [] {
    gemv::PipelineShape ring = gemv::in_ring_of<Team, stage_bytes>({.consumers = multiplying / 32});
    ring.in_flight = min_of(ring.stages, ring.in_flight * ring.stage_bytes / stage_bytes);
    return ring;
  }();
  using Weights = gemv::Pipeline<ring_shape>;

  static CERMET_DEVICE int column_of(int kt, int slice) { return (kt * shape.slices + slice) * Task::slice_elements; }

  /// An item's weights, by the whole feeding warp.
  static CERMET_DEVICE void feed(const Params& p, uint32_t item, char* smem, StreamState& at) {
    Weights ring(Team::ring(smem), Team::barriers(smem), at.stages);
#pragma unroll 1
    for (int kt = 0; kt < k_tiles; ++kt, ring.advance()) {
      ring.wait_for_room();
      if (ptx::elect_one()) {
        uint64_t* const full = ring.full + ring.stage;
        char* to = ring.next();
        ptx::mbarrier_arrive_expect(full, stage_bytes);
#pragma unroll
        for (int slice = 0; slice < shape.slices; ++slice) {
          Task::copy_weights(p, to, column_of(kt, slice), static_cast<int>(item), full);
          to += shape.weights * Task::weight_bytes;
        }
      }
      __syncwarp();
    }
    at.stages = ring.state();
  }

  /// Tokens of the stages that a set takes. Positions count on over all tasks.
  struct Tokens {
    char* data;
    uint64_t *full, *empty;
    uint32_t done;

    CERMET_DEVICE Tokens(char* smem, int set, uint32_t done)
        : data(smem + set * stream::row_stages * slot_bytes),
          full(Team::barriers(smem) + 2 * stream::most_stages + set * 2 * stream::row_stages),
          empty(full + stream::row_stages),
          done(done) {}

    static CERMET_DEVICE uint32_t slot_of(uint32_t at) { return at % stream::row_stages; }
    static CERMET_DEVICE uint32_t parity_of(uint32_t at) { return at / stream::row_stages & 1; }

    /// By one thread: those of a stage, `ahead` after the next that the set multiplies.
    CERMET_DEVICE void ask(const Params& p, const Params& far, int kt, int ahead) const {
      const uint32_t at = done + static_cast<uint32_t>(ahead), slot = slot_of(at);
      ptx::mbarrier_wait(empty + slot, parity_of(at) ^ 1);
      ptx::mbarrier_arrive_expect(full + slot, static_cast<uint32_t>(shape.slices * StreamShape::slice * p.m));
#pragma unroll
      for (int slice = 0; slice < shape.slices; ++slice)
        ptx::tma_load_2d(data + slot * slot_bytes + slice * shape.tokens * StreamShape::slice, &far.x,
                         column_of(kt, slice), 0, full + slot);
    }
    CERMET_DEVICE const char* wait() const {
      ptx::mbarrier_wait(full + slot_of(done), parity_of(done));
      return data + slot_of(done) * slot_bytes;
    }
    CERMET_DEVICE void release() {
      if (lane_index() == 0) ptx::mbarrier_arrive(empty + slot_of(done));
      ++done;
    }
  };

  /// Of a set: every other stage. Both pass all of them, so that none is ahead of the other by the whole ring.
  static CERMET_DEVICE void multiply_stages(const Params& p, const Params& far, char* smem, int set, bool asks,
                                            StreamState& at, Sum (&total)[shape.weights][Task::acc_size]) {
    Weights ring(Team::ring(smem), Team::barriers(smem), at.stages);
    Tokens tokens(smem, set, at.rows);
    if (asks && ptx::elect_one()) {
      ptx::fence_proxies();  // what was written by ordinary stores, before copies read it
#pragma unroll 1
      for (int i = 0; i < stream::row_stages && set + sets * i < k_tiles; ++i) tokens.ask(p, far, set + sets * i, i);
    }
    __syncwarp();
    Sum d[shape.weights][Task::acc_size];
#pragma unroll
    for (int i = 0; i < shape.weights * Task::acc_size; ++i) d[i / Task::acc_size][i % Task::acc_size] = 0;
#pragma unroll 1
    for (int kt = 0; kt < k_tiles; ++kt) {
      const char* const weights = ring.wait();
      if (kt % sets == set) {
        const char* const rows = tokens.wait();
        Task::multiply_stage(
            [&](int slice, int side) { return weights + (slice * shape.weights + side) * Task::weight_bytes; },
            [&](int slice) { return rows + slice * shape.tokens * StreamShape::slice; }, !Task::promotes, d);
        ptx::wgmma_wait<0>();
        tokens.release();
        if constexpr (Task::promotes)
#pragma unroll
          for (int i = 0; i < shape.weights * Task::acc_size; ++i)
            total[i / Task::acc_size][i % Task::acc_size] += d[i / Task::acc_size][i % Task::acc_size];
        if (const int later = kt + sets * stream::row_stages; asks && later < k_tiles && ptx::elect_one())
          tokens.ask(p, far, later, stream::row_stages - 1);
      }
      ring.release();
    }
    if constexpr (!Task::promotes)
#pragma unroll
      for (int i = 0; i < shape.weights * Task::acc_size; ++i)
        total[i / Task::acc_size][i % Task::acc_size] = d[i / Task::acc_size][i % Task::acc_size];
    at.stages = ring.state();
    at.rows = tokens.done;
  }

  /// An item's results. `p`: parameters nearby; `far`: the same in device memory.
  static CERMET_DEVICE void multiply(const Params& p, const Params& far, uint32_t item, char* smem, StreamState& at) {
    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(Team::warp()), 0), set = warp / stream::row_warps;
    typename Task::Results results(p, smem + shape.walk_sums_at(), static_cast<int>(Team::rank()),
                                   static_cast<int>(item));
    results.load(0);
    Sum total[shape.weights][Task::acc_size] = {};
    multiply_stages(p, far, smem, set, warp % stream::row_warps == 0, at, total);
    Task::finish(p, Team{}, results, set, 0, total);
  }
};

}  // namespace cermet::gemm
#endif
