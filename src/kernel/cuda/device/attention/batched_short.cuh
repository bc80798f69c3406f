// Attention over a batch of short sequences of one length on Hopper: a warpgroup has all keys of a head in shared
// memory and multiplies 64 queries at a time with them. Three bulk copies bring an item's operands. Nothing but what
// the operands do to scores is asked for each score: how many keys there are is known to the compiler, every query sees
// all of them, and where they fit one tile no weight is ever corrected.
#pragma once

#include "kernel/cuda/device/attention/batched_scores.cuh"
#include "kernel/cuda/device/attention/batched_short.hpp"
#include "kernel/cuda/device/attention/queries.cuh"
#include "kernel/cuda/device/attention/score_fragment.cuh"
#include "kernel/cuda/device/ptx/mbarrier.cuh"
#include "kernel/cuda/device/ptx/tma.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"
#include "kernel/cuda/device/task.cuh"

namespace cermet::attention {

template <BatchedShortConfig C, ScoreConfig S>
struct BatchedShortTask {
  using Params = BatchedShortParams;
  using Operands = BatchedScores<S>;
  using T = Element<C.type>;
  using Out = T;
  static constexpr int head_size = batched_short_head, rows = batched_short_rows, row_bytes = 2 * head_size,
                       item_rows = C.row_tiles * rows, q_box = rows;
  static constexpr int tile_keys = C.tile_keys, tiles = static_cast<int>(div_up(C.keys, C.tile_keys)),
                       steps = tile_keys / 16;
  static constexpr int q_bytes = rows * row_bytes, query_slots = min_of(2, C.row_tiles),
                       k_bytes = tiles * tile_keys * row_bytes, own_bytes = C.keys * row_bytes;
  static constexpr int halves = C.rows_differ ? 2 : 1, pairs = tile_keys / 8;
  static_assert(tile_keys % 16 == 0 && tiles <= 2 && tiles * tile_keys <= 256);
  using Terms = typename Operands::Pair[halves][pairs];

  struct Shared {
    char *q, *k, *v;
    uint64_t *keys, *values, *queries;  ///< what has arrived; queries of each slot
    __device__ explicit Shared(char* smem)
        : q(smem),
          k(q + query_slots * q_bytes),
          v(k + k_bytes),
          keys(reinterpret_cast<uint64_t*>(v + k_bytes)),
          values(keys + 1),
          queries(keys + 2) {}
#if CERMET_ARCH >= 900
    /// By one thread, rows from `row` on of a sequence's head.
    static CERMET_DEVICE void load(char* to, int bytes, const TensorMapBytes* map, const ShortRows& rows, int head,
                                   int batch, int row, uint64_t* barrier) {
      ptx::mbarrier_arrive_expect(barrier, bytes);
      ptx::tma_load_2d(to, map, head * rows.head_column, batch * rows.batch_row + head * rows.head_row + row, barrier);
    }
    CERMET_DEVICE void load_queries(const Params& p, int slot, int head, int batch, int row) const {
      load(q + slot * q_bytes, q_bytes, &p.q, p.q_rows, head, batch, row, queries + slot);
    }
#endif
  };

  /// The barriers and zeros in place of values past a sequence, set up once; how many items and tiles of queries the
  /// block has had.
  struct Ring {
    uint32_t items = 0, tiles = 0;
    template <class Team>
    CERMET_DEVICE Ring(const Params& p, Team team, char* smem) {
#if CERMET_ARCH >= 900
      if (team.rank() == 0) {
        const Shared shared(smem);
#pragma unroll
        for (int i = 0; i < 2 + query_slots; ++i) ptx::mbarrier_init(shared.keys + i, 1);
        ptx::fence_mbarrier_init();
        ptx::prefetch_tensor_map(&p.q);
        ptx::prefetch_tensor_map(&p.k);
        ptx::prefetch_tensor_map(&p.v);
      }
      // Where no values arrive: a weight of 0 does not silence a NaN. Scores of those keys are replaced, whatever they
      // are.
      if constexpr (own_bytes < k_bytes)
        for (int at = own_bytes + 16 * static_cast<int>(team.rank()); at < k_bytes; at += 16 * Team::size)
          *reinterpret_cast<Vector<uint32_t, 4>*>(Shared(smem).v + at) = Vector<uint32_t, 4>{};
#endif
    }
    template <class Team>
    CERMET_DEVICE void close(const Params&, Team, char*) {}
  };

#if CERMET_ARCH >= 900
  static CERMET_DEVICE int lane() { return static_cast<int>(lane_index()); }

  struct State {
    float maximum[2], sum[2];
    float output[head_size / 2];
  };

  /// What operands do to the scores of a tile. `row`: of this lane's first.
  static CERMET_DEVICE void load_terms(const Operands& operands, int head, int row, int tile, int queries,
                                       Terms& terms) {
#pragma unroll
    for (int h = 0; h < halves; ++h)
      operands.load_pairs(head, min_of(row + 8 * h, queries - 1), tile * tile_keys + 2 * (lane() % 4), C.keys,
                          terms[h]);
  }

  static CERMET_DEVICE void multiply_keys(const char* queries, const char* keys, float (&scores)[tile_keys / 2]) {
    ptx::wgmma_fence();
    const uint64_t a = ptx::wgmma_descriptor(queries), b = ptx::wgmma_descriptor(keys);
#pragma unroll
    for (int step = 0; step < head_size / 16; ++step)
      ptx::Wgmma<tile_keys, T, T>::multiply(scores, a + 2 * step, b + 2 * step, step > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
#pragma unroll
    for (float& score : scores) ptx::wgmma_touch(score);
  }

  /// Dot products become scores, which still lack the factor that is returned to be times log2 e.
  template <int Tile>
  static CERMET_DEVICE float finish_scores(const Params& p, const Operands& operands, const Terms& terms,
                                           float (&scores)[tile_keys / 2]) {
    constexpr int left = C.keys - Tile * tile_keys;
#pragma unroll
    for (int j = 0; j < tile_keys / 8; ++j)
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& score = scores[4 * j + 2 * h + i];
          if constexpr (Operands::changes) score = operands.change(score * p.b.a.scale, terms[h % halves][j], i);
          if (8 * (j + 1) > left && 8 * j + 2 * (lane() % 4) + i >= left) score = -infinity();
        }
    return Operands::changes ? log2_e : p.b.a.scale * log2_e;
  }

  /// Scores become weights relative to the largest so far; sums and outputs follow.
  template <int Tile>
  static CERMET_DEVICE void update(State& state, float factor, float (&scores)[tile_keys / 2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float top = largest_score(scores, h);
      if constexpr (Tile > 0) top = fmaxf(top, state.maximum[h]);
      const float base = top == -infinity() ? 0.0f : top * factor;
      const float added = to_weights(scores, h, factor, base);
      if constexpr (Tile > 0) {
        const float shrink = state.maximum[h] == top ? 1.0f : exp2_approximate(fmaf(state.maximum[h], factor, -base));
        state.sum[h] = fmaf(state.sum[h], shrink, added);
        if (__any_sync(0xffffffffu, shrink != 1.0f)) {
#pragma unroll
          for (int d = 0; d < head_size / 8; ++d)
            state.output[4 * d + 2 * h] *= shrink, state.output[4 * d + 2 * h + 1] *= shrink;
        }
      } else {
        state.sum[h] = added;
      }
      state.maximum[h] = top;
    }
  }

  /// output += weights * values, the weights in two parts.
  static CERMET_DEVICE void multiply_values(const float (&weights)[tile_keys / 2], const char* values,
                                            float (&output)[head_size / 2]) {
    uint32_t parts[2][steps][4];
#pragma unroll
    for (int step = 0; step < steps; ++step)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float a = weights[8 * step + 2 * i], b = weights[8 * step + 2 * i + 1];
        parts[0][step][i] = pack(a, b, T{});
        parts[1][step][i] = pack_rest<T>(a, b, parts[0][step][i]);
      }
    const uint64_t b = ptx::wgmma_descriptor_columns(values, k_bytes);
    ptx::wgmma_fence();
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int step = 0; step < steps; ++step)
        ptx::WgmmaRows<head_size, T>::multiply(output, parts[part][step], b + 128 * step);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
#pragma unroll
    for (float& x : output) ptx::wgmma_touch(x);
  }

  /// Tiles of keys from `Tile` on, for one tile of queries. Returns what update() was given.
  template <int Tile>
  static CERMET_DEVICE float all_tiles(const Params& p, const Operands& operands, const Shared& shared,
                                       const char* own_queries, int head, int first, int queries, bool first_tile,
                                       uint32_t phase, Terms& terms, State& state) {
    float scores[tile_keys / 2];
    multiply_keys(own_queries, shared.k + Tile * tile_keys * row_bytes, scores);
    const float factor = finish_scores<Tile>(p, operands, terms, scores);
    if constexpr (Operands::changes) {
      if constexpr (Tile + 1 < tiles) load_terms(operands, head, first + lane() / 4, Tile + 1, queries, terms);
      else if constexpr (tiles > 1 || C.rows_differ)
        load_terms(operands, head, first + rows + lane() / 4, 0, queries, terms);
    }
    update<Tile>(state, factor, scores);
    if (Tile == 0 && first_tile) ptx::mbarrier_wait(shared.values, phase);
    multiply_values(scores, shared.v + Tile * tile_keys * row_bytes, state.output);
    if constexpr (Tile + 1 < tiles)
      return all_tiles<Tile + 1>(p, operands, shared, own_queries, head, first, queries, first_tile, phase, terms,
                                 state);
    else return factor;
  }

  /// `staging`: this warp's 16 queries, which are no longer read. `first`: its first row.
  static CERMET_DEVICE void store(const attention::Params& p, const Operands& operands, int head, int first,
                                  float factor, const State& state, char* staging) {
    const int row = first + lane() / 4, column = 2 * (lane() % 4), swizzle = lane() / 4 * 16;
    float scale[2];
    bool wrong = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = state.sum[h] + __shfl_xor_sync(0xffffffffu, state.sum[h], 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      scale[h] = is_empty(p, total) ? 0.0f : 1.0f / total;
      float any = 0.0f;
#pragma unroll
      for (int d = 0; d < head_size / 8; ++d) {
        const float a = state.output[4 * d + 2 * h] * scale[h], b = state.output[4 * d + 2 * h + 1] * scale[h];
        any = fmaf(a, 0.0f, fmaf(b, 0.0f, any));  // 0 unless something is not finite
        *reinterpret_cast<uint32_t*>(staging + (lane() / 4 + 8 * h) * row_bytes + (16 * d ^ swizzle) + 2 * column) =
            pack(a, b, Out{});
      }
      wrong = wrong || (row + 8 * h < p.tokens && any != any && scale[h] - scale[h] == 0.0f);
    }
    __syncwarp();
    Out* const own = static_cast<Out*>(p.o) + head * p.o_head_stride;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = 4 * i + lane() / 8, chunk = lane() % 8;
      if (first + r < p.tokens)
        *reinterpret_cast<Vector<Out, 8>*>(own + (first + r) * p.o_token_stride + 8 * chunk) =
            *reinterpret_cast<const Vector<Out, 8>*>(staging + r * row_bytes + (16 * chunk ^ r % 8 * 16));
    }
    if (!__any_sync(0xffffffffu, wrong)) return;
    __syncwarp();
#pragma unroll 1
    for (int h = 0; h < 2; ++h) {
      if (row + 8 * h >= p.tokens) continue;
      const float maximum = (h == 0 ? state.maximum[0] : state.maximum[1]) * factor * ln_2;
      const ExactRow exact{0, row + 8 * h, head, head, 0, 0, C.keys, maximum, h == 0 ? scale[0] : scale[1]};
#pragma unroll 1
      for (int i = 0; i < head_size / 4; ++i)
        repair<ExactConfig{head_size, 0, C.type, C.type, C.type}>(p, exact, own + (row + 8 * h) * p.o_token_stride,
                                                                  i / 2 * 8 + column + i % 2, operands);
    }
  }
#endif

  template <class Team>
  static CERMET_DEVICE void run(const Params& params, uint32_t item, Team team, char* smem, Ring& ring) {
#if CERMET_ARCH >= 900
    const Shared shared(smem);
    const int head = static_cast<int>(item % C.heads),
              tile = static_cast<int>(item / C.heads % static_cast<uint32_t>(params.b.tiles));
    const int batch = static_cast<int>(item / C.heads / static_cast<uint32_t>(params.b.tiles));
    const int queries = params.b.a.tokens, item_first = tile * item_rows;
    ptx::fence_async_shared();
    team.sync();  // barriers and zeros are set up, and nobody uses an earlier item's memory
    if (team.rank() == 0) {
#pragma unroll
      for (int i = 0; i < query_slots; ++i)
        if (i == 0 || item_first + i * rows < queries)
          shared.load_queries(params, static_cast<int>((ring.tiles + i) % query_slots), head, batch,
                              item_first + i * rows);
      shared.load(shared.k, own_bytes, &params.k, params.k_rows, head, batch, 0, shared.keys);
      shared.load(shared.v, own_bytes, &params.v, params.v_rows, head, batch, 0, shared.values);
    }
    const Operands operands{params.b, batch};
    const int warp_row = item_first + 16 * static_cast<int>(team.warp());
    Terms terms;
    if constexpr (Operands::changes) load_terms(operands, head, warp_row + lane() / 4, 0, queries, terms);
#pragma unroll 1
    for (int row_tile = 0; row_tile < C.row_tiles && item_first + row_tile * rows < queries; ++row_tile) {
      const int slot = static_cast<int>(ring.tiles % query_slots);
      char* const own_queries = shared.q + slot * q_bytes;
      const int first = warp_row + row_tile * rows;
      State state;
#pragma unroll
      for (float& x : state.output) x = 0.0f;
      ptx::mbarrier_wait(shared.queries + slot, ring.tiles / query_slots & 1);
      if (row_tile == 0) ptx::mbarrier_wait(shared.keys, ring.items & 1);
      const float factor = all_tiles<0>(params, operands, shared, own_queries, head, first, queries, row_tile == 0,
                                        ring.items & 1, terms, state);
      team.sync();  // nobody multiplies these queries any more
      const attention::Params a = batch_params<C.type, C.type, C.type>(params.b, batch);
      store(a, operands, head, first, factor, state, own_queries + static_cast<int>(team.warp()) * 16 * row_bytes);
      ++ring.tiles;
      if (C.row_tiles > query_slots && item_first + (row_tile + query_slots) * rows < queries &&
          row_tile + query_slots < C.row_tiles) {
        ptx::fence_async_shared();
        team.sync();
        if (team.rank() == 0)
          shared.load_queries(params, slot, head, batch, item_first + (row_tile + query_slots) * rows);
      }
    }
    ++ring.items;
#endif
  }
};

}  // namespace cermet::attention
