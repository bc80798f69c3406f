// GEMMs of few rows on Hopper's tensor cores (sm_90a), at the speed at which weights arrive:
// y[m, n] = E(sum over k of x[m, k] * w[n, k]), m at most 64 tokens.
//
//   Tiles      The operands of wgmma are exchanged: rows of the weight are its 64 rows and tokens its columns (8, 16,
//              32 or 64), so that 8 tokens cost no more copies than 8 rows. An item is `rows` rows of the weight and
//              all of k: nothing is added between blocks. A slice is 128 bytes of k of these rows and of all tokens; a
//              stage has 1, 2 or 4 slices.
//   Threads    consumer warpgroups    one for each 64 rows of the item (a group), in one or two sets, which take every
//                                     stage, or every other stage
//              producer of weights    a warp; its copies of constant weights begin before earlier launches have ended
//              producer of tokens     a warp
//   Shared     0                      ring    [stages][slices] of w (weights, rows, 128 bytes), x (tokens, 128 bytes)
//   memory     + stages * stage       sums    (sets, weights, chunk, pitch) on their way to the epilogue; what the last
//                                             warpgroup reads past its rows may lie here, too
//              + sums_bytes           full    [stages] barriers, 8 bytes each: weights and tokens have arrived
//              + 8 * stages           empty   [stages] barriers: the warps of a set have read a stage
//              Example: bf16, 32 rows of one weight, 8 tokens: a slice is 4 + 1 KiB, a stage of two 10 KiB.
//   Phases     fetch()        the first stages of weights, where no launch writes them
//              produce()      waits for empty[stage], TMA loads, which complete full[stage]
//              multiply()     waits for full[stage], wgmma, arrives at empty[stage]
//              finish()       sums meet in shared memory, a chunk of 16 tokens at a time: those of sets are added, and
//                             the epilogue gets neighbouring columns of a row of y, or both columns of a pair
//   Variants   End says what becomes of the sums; StreamPairs (stream_pairs.cuh) has rope_and_cache after the product.
//              In a walk (stream_walk.cuh) weights come through the ring of all tasks.
#pragma once

#include "kernel/cuda/device/gemm/stream.hpp"
#include "kernel/cuda/device/gemm/stream_walk.cuh"
#include "kernel/cuda/device/overlap.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"
#include "kernel/cuda/device/team.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"

namespace cermet::gemm {

/// Sums in shared memory, of a chunk of tokens: (sets, weights, chunk, pitch).
template <StreamShape S, class Sum>
struct StreamSums {
  static constexpr int threads = 128 * S.consumers(),
                       area = S.chunk() * S.pitch();  // of a weight and a set
  Sum* sums;
  int rank;

  /// A thread's sums of the tokens of chunk I, as wgmma leaves them: columns of its fragments are tokens, rows are
  /// columns of the result. acc: (weights, tokens / 2)
  template <int I, int Size>
  CERMET_DEVICE void put(const Sum (&acc)[S.weights][Size], int set, int group) {
    const int lane = static_cast<int>(lane_index()), row = group * 64 + rank / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int side = 0; side < S.weights; ++side)
#pragma unroll
      for (int j = 0; j < S.chunk() / 8; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
          for (int i = 0; i < 2; ++i)
            sums[(set * S.weights + side) * area + (8 * j + 2 * (lane % 4) + i) * S.pitch() + row + 8 * h] =
                acc[side][4 * (I * S.chunk() / 8 + j) + 2 * h + i];
  }

  /// Of `Width` neighbouring columns of a token, over all sets.
  template <int Width>
  CERMET_DEVICE Vector<Sum, Width> sum_of(int side, int token, int column) const {
    const auto at = [&](int set) {
      return *reinterpret_cast<const Vector<Sum, Width>*>(sums + (set * S.weights + side) * area + token * S.pitch() +
                                                          column);
    };
    Vector<Sum, Width> sum = at(0);
#pragma unroll
    for (int set = 1; set < S.sets; ++set) {
      const Vector<Sum, Width> more = at(set);
#pragma unroll
      for (int c = 0; c < Width; ++c) sum[c] += more[c];
    }
    return sum;
  }
};

/// The epilogue of rows: a thread has groups of four columns. Their operands are loaded a chunk of tokens ahead: those
/// of the first while the weights stream.
template <class E, StreamShape S, int N, class Sum>
struct StreamRows : StreamSums<S, Sum> {
  using Params = StreamParams;
  using Base = StreamSums<S, Sum>;
  using Base::rank, Base::threads;
  static constexpr int width = 4, across = S.rows / width;
  static constexpr int quads = static_cast<int>(div_up(S.chunk() * across, threads));  // of a thread, for a chunk
  static_assert(N % width == 0);

  const StreamParams& p;
  int n;
  epilogue::ValuesOf<E> values[quads][width];

  CERMET_DEVICE StreamRows(const StreamParams& p, char* sums, int rank, int item)
      : Base{reinterpret_cast<Sum*>(sums), rank}, p(p), n(item * S.rows) {}
  /// Where an item's rows of the weight begin.
  static CERMET_DEVICE int first_row(int item) { return item * S.rows; }

  /// A group's token of a chunk, and its first column among the item's.
  CERMET_DEVICE int token_of(int i) const { return (rank + i * threads) / across; }
  CERMET_DEVICE int column_of(int i) const { return (rank + i * threads) % across * width; }
  CERMET_DEVICE bool exists(int chunk, int i) const {
    return token_of(i) < S.chunk() && chunk * S.chunk() + token_of(i) < p.m && n + column_of(i) < N;
  }

  CERMET_DEVICE void load(int chunk) {
    if constexpr (E::extras > 0) {
#pragma unroll
      for (int i = 0; i < quads; ++i) {
        if (!exists(chunk, i)) continue;
        const int row = chunk * S.chunk() + token_of(i);
        epilogue::load_row<E>(p.extra, row, 0, values[i][0]);
#pragma unroll
        for (int c = 0; c < width; ++c) {
          if (c > 0) values[i][c] = values[i][0];
        }
#pragma unroll
        for (int c = 0; c < width; ++c) epilogue::load_place<E>(p.extra, row, n + column_of(i) + c, 0, values[i][c]);
      }
    }
  }

  /// The results of a chunk whose sums all threads have put.
  CERMET_DEVICE void finish(int chunk) const {
#pragma unroll
    for (int i = 0; i < quads; ++i) {
      if (!exists(chunk, i)) continue;
      const int token = token_of(i);
      const Vector<Sum, width> sum = this->template sum_of<width>(0, token, column_of(i));
      const Vector<Sum, width> up =
          S.weights == 2 ? this->template sum_of<width>(S.weights - 1, token, column_of(i)) : sum;
      const int row = chunk * S.chunk() + token, column = n + column_of(i);
      store<E>(p.y, row * p.y_stride + column, sum, up, values[i]);
      if constexpr (epilogue::gives_two<E>)
        store<typename E::Second>(p.second, row * p.second_stride + column, sum, up, values[i]);
    }
  }
  template <class Result>
  static CERMET_DEVICE void store(void* to, int64_t at, const Vector<Sum, width>& sum,
                                  [[maybe_unused]] const Vector<Sum, width>& up,
                                  const epilogue::ValuesOf<E> (&x)[width]) {
    using T = Element<Result::out>;
    Vector<T, width> out;
#pragma unroll
    for (int c = 0; c < width; ++c) {
      if constexpr (S.weights == 2) out[c] = epilogue::rounded<T>(Result::value(sum[c], up[c], x[c]));
      else out[c] = epilogue::rounded<T>(Result::value(sum[c], x[c]));
    }
    *reinterpret_cast<Vector<T, width>*>(static_cast<T*>(to) + at) = out;
  }
};
/// What becomes of the sums of a product: Results<E, shape, N, Sum>.
struct StoreRows {
  template <class E, StreamShape S, int N, class Sum>
  using Results = StreamRows<E, S, N, Sum>;
};

#if CERMET_ARCH >= 900
/// E: the epilogue, see tile/epilogue.cuh.
template <StreamConfig C, class E, class End = StoreRows>
struct Stream {
  using W = Element<C.w>;
  using Mma = ptx::Wgmma<C.shape.tokens, W,
                         Element<C.x>>;  // 64 rows of the weight x tokens, 32 bytes of k
  using Sum = typename Mma::Sum;
  using Results = typename End::template Results<E, C.shape, C.n, Sum>;
  using Params = typename Results::Params;
  static constexpr StreamShape shape = C.shape;
  static constexpr int consumers = shape.consumers(),
                       weight_warp = 4 * consumers;  // the next one is that of the tokens
  static constexpr int slice_elements = StreamShape::slice / static_cast<int>(sizeof(W));
  static constexpr int k_tiles = static_cast<int>(div_up(C.k, slice_elements* shape.slices));  // stages of an item
  static constexpr int preloads = C.preload_w ? min_of(k_tiles, shape.stages) : 0;
  static constexpr int acc_size = shape.tokens / 2;  // sums of a thread, of each weight
  static constexpr bool promotes = C.promote,
                        at_once = shape.sets > 1 || promotes;  // products are waited for stage by stage
  static constexpr int weight_bytes = shape.rows * StreamShape::slice;

  static_assert(sizeof(W) == sizeof(Element<C.x>) && C.k > 0 && C.n > 0);
  static_assert(shape.rows % 8 == 0 && shape.rows <= 256 && shape.stages % shape.sets == 0 &&
                shape.stages > shape.sets);
  static_assert(!E::column_sums);

  // ---- The ring

  struct Shared {
    char *ring, *sums;
    uint64_t *full, *empty;  // (stages)

    __device__ explicit Shared(char* smem) : ring(smem), sums(smem + shape.stages * shape.stage_bytes()) {
      full = reinterpret_cast<uint64_t*>(smem + shape.barriers_at());
      empty = full + shape.stages;
    }
    __device__ char* weight(int stage, int slice,
                            int side) const {  // (rows, 128 bytes)
      return ring + stage * shape.stage_bytes() + slice * shape.slice_bytes() + side * weight_bytes;
    }
    __device__ char* tokens(int stage, int slice) const {  // (tokens, 128 bytes)
      return weight(stage, slice, shape.weights);
    }
  };

  using Slot = ptx::RingSlot<shape.stages>;
  /// Sets up the barriers; counts the stages that the block's items have taken so far.
  struct Ring {
    uint32_t stages = 0;
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

  static CERMET_DEVICE void release(const Shared& shared, int stage) {
    if (lane_index() == 0) ptx::mbarrier_arrive(shared.empty + stage);
  }

  // ---- Producers: a thread each

  /// A slice of an item's rows of the weights.
  static CERMET_DEVICE void copy_weights(const Params& p, char* to, int column, int item, uint64_t* full) {
    const int first = Results::first_row(item);
    ptx::tma_load_2d(to, &p.w, column, first, full);
    if constexpr (shape.pairs) ptx::tma_load_2d(to + weight_bytes / 2, &p.w, column, Results::second_row(item), full);
    if constexpr (shape.weights == 2) ptx::tma_load_2d(to + weight_bytes, &p.w_up, column, first, full);
  }
  /// The bytes of a stage's tokens are announced with those of its weights, whichever come first.
  static CERMET_DEVICE void load_weights(const Params& p, const Shared& shared, int stage, int kt, int item) {
    ptx::mbarrier_arrive_expect(shared.full + stage, static_cast<uint32_t>(shape.slices * StreamShape::slice *
                                                                           (shape.weights * shape.rows + p.m)));
#pragma unroll
    for (int slice = 0; slice < shape.slices; ++slice)
      copy_weights(p, shared.weight(stage, slice, 0), (kt * shape.slices + slice) * slice_elements, item,
                   shared.full + stage);
  }
  static CERMET_DEVICE void load_tokens(const Params& p, const Shared& shared, int stage, int kt) {
#pragma unroll
    for (int slice = 0; slice < shape.slices; ++slice)
      ptx::tma_load_2d(shared.tokens(stage, slice), &p.x, (kt * shape.slices + slice) * slice_elements, 0,
                       shared.full + stage);
  }

  /// An item's stages as they become free, of which the first `preloaded` are on their way already. load(stage, kt)
  template <class Load>
  static CERMET_DEVICE void produce(const Shared& shared, uint32_t begin, int preloaded, Load load) {
    Slot slot(begin + static_cast<uint32_t>(preloaded));
#pragma unroll 1
    for (int kt = preloaded; kt < k_tiles; ++kt, slot.advance()) {
      ptx::mbarrier_wait(shared.empty + slot.stage, slot.phase ^ 1);
      load(slot.stage, kt);
    }
  }

  // ---- Consumers

  /// Products of one stage, without waiting for them. weight(slice, side): (64, 128 bytes); tokens(slice): (tokens, 128
  /// bytes); acc: (weights, tokens / 2), a thread's share of 64 x tokens
  template <class Weight, class Tokens>
  static CERMET_DEVICE void multiply_stage(Weight&& weight, Tokens&& tokens, bool add,
                                           Sum (&acc)[shape.weights][acc_size]) {
    ptx::wgmma_fence();
#pragma unroll
    for (int slice = 0; slice < shape.slices; ++slice)
#pragma unroll
      for (int i = 0; i < 4; ++i)  // 32 bytes of k
#pragma unroll
        for (int side = 0; side < shape.weights; ++side) {
          const uint64_t w = ptx::wgmma_descriptor(weight(slice, side)) + 2 * i;
          Mma::multiply(acc[side], w, ptx::wgmma_descriptor(tokens(slice)) + 2 * i, add || slice > 0 || i > 0);
        }
    ptx::wgmma_commit();
  }

  /// Of a set, which takes every shape.sets-th stage. With two sets, one waits for its products while the other
  /// multiplies; a stage is free as soon as they are done. Promoted sums move to `total` after each stage.
  static CERMET_DEVICE void multiply(const Shared& shared, int group, int set, Slot slot,
                                     Sum (&total)[shape.weights][acc_size]) {
    Sum acc[shape.weights][acc_size];
    int previous = -1;
#pragma unroll
    for (int i = 0; i < shape.weights * acc_size; ++i) acc[i / acc_size][i % acc_size] = 0;
#pragma unroll 1
    for (int kt = set; kt < k_tiles; kt += shape.sets, slot.advance(shape.sets)) {
      ptx::mbarrier_wait(shared.full + slot.stage, slot.phase);
      multiply_stage(
          [&](int slice, int side) { return shared.weight(slot.stage, slice, side) + group * 64 * StreamShape::slice; },
          [&](int slice) { return shared.tokens(slot.stage, slice); }, !C.promote, acc);
      if constexpr (at_once) {
        ptx::wgmma_wait<0>();
        release(shared, slot.stage);
        if constexpr (C.promote)
#pragma unroll
          for (int i = 0; i < shape.weights * acc_size; ++i)
            total[i / acc_size][i % acc_size] += acc[i / acc_size][i % acc_size];
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
      for (int i = 0; i < shape.weights * acc_size; ++i)
        total[i / acc_size][i % acc_size] = acc[i / acc_size][i % acc_size];
  }

  template <class Team>
  static CERMET_DEVICE void consume(const Params& p, const Shared& shared, Team team, int warpgroup, int item,
                                    uint32_t begin) {
    const int group = warpgroup % shape.groups(), set = warpgroup / shape.groups();
    Results results(p, shared.sums, static_cast<int>(team.rank()), item);
    results.load(0);
    Sum total[shape.weights][acc_size] = {};  // (weights, tokens / 2)
    multiply(shared, group, set, Slot(begin + static_cast<uint32_t>(set)), total);
    finish(p, team, results, set, group, total);
  }
  template <class Team>
  static CERMET_DEVICE void finish(const Params& p, Team team, Results& results, int set, int group,
                                   const Sum (&total)[shape.weights][acc_size]) {
    for_constants<shape.tokens / shape.chunk()>([&]<int I>(Constant<I>) {
      if (I * shape.chunk() >= p.m) return;
      team.sync_part(0, 128 * consumers);  // the sums before have been read
      results.template put<I>(total, set, group);
      team.sync_part(0, 128 * consumers);
      results.finish(I);
      if (I + 1 < shape.tokens / shape.chunk()) results.load(I + 1);
    });
  }

  // ---- The task (entry.cuh)

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
    if constexpr (preloads > 0) {
      if (team.warp() == weight_warp && ptx::elect_one()) {
        const Shared shared(smem);
#pragma unroll 1
        for (int kt = 0; kt < preloads; ++kt) load_weights(p, shared, kt, kt, static_cast<int>(item));
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
        produce(shared, ring.stages, first ? preloads : 0,
                [&](int stage, int kt) { load_weights(p, shared, stage, kt, number); });
    } else if (warp > weight_warp) {
      if (ptx::elect_one())
        produce(shared, ring.stages, 0, [&](int stage, int kt) { load_tokens(p, shared, stage, kt); });
    } else {
      consume(p, shared, team, warp / 4, number, ring.stages);
    }
    __syncwarp();
    ring.stages += k_tiles;
  }

  /// The same in a walk (walk.cuh), where weights come through the ring of all tasks.
  static constexpr bool shares_ring = true;
  template <class Team>
  static CERMET_DEVICE bool starts_early(const Params&, Team) {
    return C.preload_w;
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
};
#endif

}  // namespace cermet::gemm
