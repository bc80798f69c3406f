// Matrix products of few rows on Hopper's tensor cores (sm_90a), at the speed at which weights arrive. The roles of the
// operands are exchanged: rows of the weight are the 64 rows of a wgmma, tokens its columns, so that 8 tokens cost no
// more copies than 8 rows. A block has a share of the weight's rows and all of k: nothing is added between blocks. Two
// warps stream slices of 128 bytes of k of these rows, and of all tokens, through a ring in shared memory with bulk
// tensor copies; those of constant weights begin before earlier launches have ended.
#pragma once

#include "kernel/cuda/device/gemm/general_config.cuh"
#include "kernel/cuda/device/gemm/stream_pairs.cuh"
#include "kernel/cuda/device/gemm/stream_results.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"
#if defined(CERMET_WALK)
#include "kernel/cuda/device/gemm/stream_walk.cuh"
#endif

namespace cermet::gemm {

struct StreamConfig {
  DType x, w;
  int n, k;
  StreamShape shape;
  bool constant = false;  ///< no launch writes the weights: they may be fetched early
  bool promote =
      false;  ///< sums move to other registers after each stage, where the tensor cores sum with less than float32
  rotation::Config rotation = {};
};

template <StreamConfig C, class E, class Sum, bool Rotates = C.rotation.given>
struct StreamEnd {
  using Params = StreamParams;
  using Results = StreamResults<E, C.shape, C.n, Sum>;
};
template <StreamConfig C, class E, class Sum>
struct StreamEnd<C, E, Sum, true> {
  using Params = StreamRotatedParams;
  using Results = StreamPairs<E, C.shape, C.rotation, Sum>;
};

#if CERMET_ARCH >= 900
/// E: the epilogue, see tile/epilogue.cuh.
template <StreamConfig C, class E>
struct Stream {
  using W = Element<C.w>;
  using Sum = typename SumOf<C.w>::type;
  using Params = typename StreamEnd<C, E, Sum>::Params;
  using Results = typename StreamEnd<C, E, Sum>::Results;
  using Multiply = ptx::Wgmma<C.shape.tokens, W, Element<C.x>>;
  static constexpr StreamShape shape = C.shape;
  static constexpr int consumers = shape.consumers(),
                       weight_warp = 4 * consumers;  // the next one is that of the tokens
  static constexpr int slice_elements = StreamShape::slice / static_cast<int>(sizeof(W));
  static constexpr int fills = static_cast<int>(div_up(C.k, slice_elements* shape.slices));  // of stages, for an item
  static constexpr int early = C.constant ? min_of(fills, shape.stages) : 0;
  static constexpr int own = shape.tokens / 2;  // sums of a thread, of each weight
  static constexpr bool promotes = C.promote,
                        at_once = shape.sets > 1 || promotes;  // products are waited for stage by stage
  static constexpr int weight_bytes = shape.rows * StreamShape::slice;

  static_assert(C.rotation.given == shape.pairs);
  static_assert(sizeof(W) == sizeof(Element<C.x>) && C.k > 0 && C.n > 0);
  static_assert(shape.rows % 8 == 0 && shape.rows <= 256 && shape.stages % shape.sets == 0 &&
                shape.stages > shape.sets);
  static_assert(!E::column_sums);

  struct Shared {
    char *ring, *sums;
    uint64_t *full, *empty;

    __device__ explicit Shared(char* smem) : ring(smem), sums(smem + shape.stages * shape.stage_bytes()) {
      full = reinterpret_cast<uint64_t*>(smem + shape.barriers_at());
      empty = full + shape.stages;
    }
    __device__ char* weight(int stage, int slice, int side) const {
      return ring + stage * shape.stage_bytes() + slice * shape.slice_bytes() + side * weight_bytes;
    }
    __device__ char* tokens(int stage, int slice) const { return weight(stage, slice, shape.weights); }
  };

  /// Place in the ring: counts on over all items of the block, so that barrier phases follow from it.
  struct Slot {
    int stage;
    uint32_t phase;
    __device__ explicit Slot(uint32_t fill)
        : stage(static_cast<int>(fill % shape.stages)), phase(fill / shape.stages & 1) {}
    __device__ void advance(int steps = 1) {
      for (int i = 0; i < steps; ++i)
        if (++stage == shape.stages) stage = 0, phase ^= 1;
    }
  };

  /// The stages' barriers, and how many fills the block's items have taken so far.
  struct Ring {
    uint32_t fills = 0;
    bool is_open = false;  ///< whether all threads know that the barriers are set up

    template <class Team>
    CERMET_DEVICE Ring(const Params& p, Team team, char* smem) {
      static_assert(Team::size == shape.threads());
      if (team.rank() != 32 * weight_warp) return;
      const Shared shared(smem);
      for (int i = 0; i < shape.stages; ++i) {
        ptx::mbarrier_init(shared.full + i, 1);
        ptx::mbarrier_init(shared.empty + i, shape.groups() * 4);
      }
      ptx::fence_mbarrier_init();
      ptx::prefetch_tensor_map(&p.w);
      if constexpr (shape.weights == 2) ptx::prefetch_tensor_map(&p.w_up);
      ptx::prefetch_tensor_map(&p.x);
      ptx::fence_async_shared();
    }
    template <class Team>
    CERMET_DEVICE void close(const Params&, Team team, char* smem) {
      ptx::end_barriers(team, Shared(smem).full, 2 * shape.stages);
    }
  };

  /// A slice of an item's rows of the weights.
  static CERMET_DEVICE void copy_weights(const Params& p, char* to, int column, int item, uint64_t* full) {
    const int first = Results::first_row(item);
    ptx::tma_load_2d(to, &p.w, column, first, full);
    if constexpr (shape.pairs) ptx::tma_load_2d(to + weight_bytes / 2, &p.w, column, Results::second_row(item), full);
    if constexpr (shape.weights == 2) ptx::tma_load_2d(to + weight_bytes, &p.w_up, column, first, full);
  }
  /// The bytes of a stage's tokens are announced with those of its weights, whichever come first.
  static CERMET_DEVICE void load_weights(const Params& p, const Shared& shared, int stage, int fill, int item) {
    ptx::mbarrier_arrive_expect(shared.full + stage, static_cast<uint32_t>(shape.slices * StreamShape::slice *
                                                                           (shape.weights * shape.rows + p.m)));
#pragma unroll
    for (int slice = 0; slice < shape.slices; ++slice)
      copy_weights(p, shared.weight(stage, slice, 0), (fill * shape.slices + slice) * slice_elements, item,
                   shared.full + stage);
  }
  static CERMET_DEVICE void load_tokens(const Params& p, const Shared& shared, int stage, int fill) {
#pragma unroll
    for (int slice = 0; slice < shape.slices; ++slice)
      ptx::tma_load_2d(shared.tokens(stage, slice), &p.x, (fill * shape.slices + slice) * slice_elements, 0,
                       shared.full + stage);
  }

  /// An item's stages as they become free; `begun`: fills that are on their way already.
  template <class Load>
  static CERMET_DEVICE void produce(const Shared& shared, uint32_t begin, int begun, Load load) {
    Slot slot(begin + static_cast<uint32_t>(begun));
#pragma unroll 1
    for (int fill = begun; fill < fills; ++fill, slot.advance()) {
      ptx::mbarrier_wait(shared.empty + slot.stage, slot.phase ^ 1);
      load(slot.stage, fill);
    }
  }

  /// Products of one stage, without waiting for them. weight(slice, side), tokens(slice): where they are.
  template <class Weight, class Tokens>
  static CERMET_DEVICE void multiply_stage(Weight&& weight, Tokens&& tokens, bool add, Sum (&d)[shape.weights][own]) {
    ptx::wgmma_fence();
#pragma unroll
    for (int slice = 0; slice < shape.slices; ++slice)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int side = 0; side < shape.weights; ++side) {
          const uint64_t w = ptx::wgmma_descriptor(weight(slice, side)) + 2 * i;
          Multiply::multiply(d[side], w, ptx::wgmma_descriptor(tokens(slice)) + 2 * i, add || slice > 0 || i > 0);
        }
    ptx::wgmma_commit();
  }
  static CERMET_DEVICE void release(const Shared& shared, int stage) {
    if (lane_index() == 0) ptx::mbarrier_arrive(shared.empty + stage);
  }

  /// Of a set, which takes every shape.sets-th stage. With two sets, one waits for its products while the other
  /// multiplies; a stage is free as soon as they are done. Promoted sums move to `total` after each stage.
  static CERMET_DEVICE void multiply(const Shared& shared, int group, int set, Slot slot,
                                     Sum (&total)[shape.weights][own]) {
    Sum d[shape.weights][own];
    int previous = -1;
#pragma unroll
    for (int i = 0; i < shape.weights * own; ++i) d[i / own][i % own] = 0;
#pragma unroll 1
    for (int fill = set; fill < fills; fill += shape.sets, slot.advance(shape.sets)) {
      ptx::mbarrier_wait(shared.full + slot.stage, slot.phase);
      multiply_stage(
          [&](int slice, int side) { return shared.weight(slot.stage, slice, side) + group * 64 * StreamShape::slice; },
          [&](int slice) { return shared.tokens(slot.stage, slice); }, !C.promote, d);
      if constexpr (at_once) {
        ptx::wgmma_wait<0>();
        release(shared, slot.stage);
        if constexpr (C.promote)
#pragma unroll
          for (int i = 0; i < shape.weights * own; ++i) total[i / own][i % own] += d[i / own][i % own];
      } else {
        ptx::wgmma_wait<1>();
        if (previous >= 0) release(shared, previous);
        previous = slot.stage;
      }
    }
    if constexpr (!at_once) {
      ptx::wgmma_wait<0>();
      if (previous >= 0) release(shared, previous);
    }
    if constexpr (!C.promote)
#pragma unroll
      for (int i = 0; i < shape.weights * own; ++i) total[i / own][i % own] = d[i / own][i % own];
  }

  template <class Team>
  static CERMET_DEVICE void consume(const Params& p, const Shared& shared, Team team, int warpgroup, int item,
                                    uint32_t begin) {
    const int group = warpgroup % shape.groups(), set = warpgroup / shape.groups();
    Results results(p, shared.sums, static_cast<int>(team.rank()), item);
    results.load(0);
    Sum d[shape.weights][own] = {};
    multiply(shared, group, set, Slot(begin + static_cast<uint32_t>(set)), d);
    finish(p, team, results, set, group, d);
  }
  template <class Team>
  static CERMET_DEVICE void finish(const Params& p, Team team, Results& results, int set, int group,
                                   const Sum (&d)[shape.weights][own]) {
    for_constants<shape.tokens / shape.chunk()>([&]<int I>(Constant<I>) {
      if (I * shape.chunk() >= p.m) return;
      team.sync_part(0, 128 * consumers);  // the sums before have been read
      results.template put<I>(d, set, group);
      team.sync_part(0, 128 * consumers);
      results.finish(I);
      if (I + 1 < shape.tokens / shape.chunk()) results.load(I + 1);
    });
  }

  template <class Team>
  static CERMET_DEVICE void fetch(const Params& p, uint32_t item, Team team, char* smem, Ring& ring) {
    if (ring.is_open) return;
    if (team.warp() < weight_warp) {
      constexpr int maps = 3 * sizeof(TensorMapBytes), all = sizeof(StreamParams);
      constexpr int unused = static_cast<int>((epilogue::most_extras - E::extras) * sizeof(epilogue::Operand));
      touch_parameters<maps, all - maps - unused>(p);
      if constexpr (sizeof(Params) > all) touch_parameters<all, sizeof(Params) - all>(p);
      return;
    }
    __syncwarp();
    if constexpr (early > 0) {
      if (team.warp() == weight_warp && ptx::elect_one()) {
        const Shared shared(smem);
#pragma unroll 1
        for (int fill = 0; fill < early; ++fill) load_weights(p, shared, fill, fill, static_cast<int>(item));
      }
      __syncwarp();
    }
  }

  template <class Team>
  static CERMET_DEVICE void compute(const Params& p, uint32_t item, Team team, char* smem, Ring& ring) {
    const bool first = !ring.is_open;
    if (first) team.sync();
    ring.is_open = true;
    const Shared shared(smem);
    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(team.warp()), 0), number = static_cast<int>(item);
    if (warp == weight_warp) {
      if (ptx::elect_one())
        produce(shared, ring.fills, first ? early : 0,
                [&](int stage, int fill) { load_weights(p, shared, stage, fill, number); });
    } else if (warp > weight_warp) {
      if (ptx::elect_one())
        produce(shared, ring.fills, 0, [&](int stage, int fill) { load_tokens(p, shared, stage, fill); });
    } else {
      consume(p, shared, team, warp / 4, number, ring.fills);
    }
    __syncwarp();
    ring.fills += fills;
  }

#if defined(CERMET_WALK)
  /// The same in a walk, where weights come through the ring of all tasks.
  static constexpr bool shares_ring = true;
  template <class Team>
  static CERMET_DEVICE bool starts_early(const Params&, Team) {
    return C.constant;
  }
  static CERMET_DEVICE void acquire_maps(const Params& far) {
    ptx::acquire_tensor_map(&far.w);
    if constexpr (shape.weights == 2) ptx::acquire_tensor_map(&far.w_up);
  }
  template <class Team>
  static CERMET_DEVICE void prepare(const Params& far, uint32_t, Team team) {
    ptx::fence_async_shared();  // accesses to what copies of tokens will write
    if (team.warp() % stream::row_warps == 0) ptx::acquire_tensor_map(&far.x);
  }
  template <class Team>
  static CERMET_DEVICE void feed(const Params& p, uint32_t item, Team, char* smem, StreamState& at) {
    StreamWalk<Stream, Team>::feed(p, item, smem, at);
  }
  template <class Team>
  static CERMET_DEVICE void multiply(const Params& p, const Params& far, uint32_t item, Team, char* smem,
                                     StreamState& at) {
    StreamWalk<Stream, Team>::multiply(p, far, item, smem, at);
  }
#endif
};
#endif

}  // namespace cermet::gemm
