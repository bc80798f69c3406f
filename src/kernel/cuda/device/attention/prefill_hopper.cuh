// Attention of many queries on Hopper's tensor cores: 64 rows (queries times the heads that share a key-value head) for
// each warpgroup against tiles of 64 keys. While a tile's weights are multiplied with its values, the scores of the
// next tile are computed and become weights. A weight is multiplied as two 16-bit parts, which leaves it 16 (bf16) or
// 22 (f16) significant bits. Work items with more keys come first.
#pragma once

#include "kernel/cuda/device/attention/prefill_copy.cuh"
#include "kernel/cuda/device/attention/prefill_hopper.hpp"
#include "kernel/cuda/device/attention/queries.cuh"
#include "kernel/cuda/device/attention/score_fragment.cuh"
#include "kernel/cuda/device/ptx/bulk.cuh"
#include "kernel/cuda/device/ptx/wgmma.cuh"

namespace cermet::attention {

template <HopperPrefillConfig C>
struct HopperPrefillTask {
  using Params = PrefillParams;
  using T = Element<C.kv>;
  using QueryElement = Element<C.q>;
  static constexpr int threads = 128 * C.warpgroups, rows = 64 * C.warpgroups, keys = hopper_keys;
  using Q = TileRows<C.head_size, rows>;
  using K = TileRows<C.head_size, keys>;
  using V = TileRows<C.value_size, keys>;
  static constexpr bool paged = C.block != 0, split_queries = C.q != C.kv;
  static constexpr int steps = keys / 16,
                       column_steps = 64 / 16;  // instructions for the keys of a tile; for a piece of 64 elements

  /// Two rows of a thread, lane / 4 and lane / 4 + 8 of its warp's 16: scores[4 j + 2 h + i] is row h and key 8 j + 2
  /// (lane % 4) + i.
  struct State {
    float maximum[2], sum[2];  ///< the maximum times log2 e; the sum of this lane's weights
    float output[C.value_size / 2];
  };
  /// Weights as fragments of the left operand, in two parts.
  struct Weights {
    uint32_t main[steps][4], rest[steps][4];
  };
  /// What does not change from tile to tile.
  struct Rows {
    int first, all, position, keys_end;  ///< first row of this warp in those of the sequence, which has `all`; position
                                         ///< of row 0; keys of the sequence
    Visible seen_by_all;                 ///< keys that all 64 rows of the warpgroup see
    CERMET_DEVICE int row(int half) const { return first + 8 * half + static_cast<int>(lane_index() / 4); }
    CERMET_DEVICE Visible seen(const attention::Params& p, int row) const {
      return row < all ? visible_keys(p, position + row / C.group, keys_end) : Visible{0, 0};
    }
  };

#if CERMET_ARCH >= 900
  /// Starts scores = queries * keys.
  static CERMET_DEVICE void multiply_keys(const char* queries, const char* tile, float (&scores)[keys / 2]) {
    ptx::wgmma_fence();
#pragma unroll
    for (int part = 0; part < (split_queries ? 2 : 1); ++part)
#pragma unroll
      for (int piece = 0; piece < C.head_size / 64; ++piece) {
        const uint64_t a = ptx::wgmma_descriptor(queries + part * Q::bytes + piece * (rows * 128)),
                       b = ptx::wgmma_descriptor(tile + piece * (keys * 128));
#pragma unroll
        for (int step = 0; step < column_steps; ++step)
          ptx::Wgmma<keys, T, T>::multiply(scores, a + 2 * step, b + 2 * step, part + piece + step > 0);
      }
    ptx::wgmma_commit();
  }

  /// Starts output += weights * values.
  static CERMET_DEVICE void multiply_values(const Weights& weights, const char* tile,
                                            float (&output)[C.value_size / 2]) {
    const uint64_t b = ptx::wgmma_descriptor_columns(tile, keys * 128);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < steps; ++step)
      ptx::WgmmaRows<C.value_size, T>::multiply(output, weights.main[step], b + 128 * step);
#pragma unroll
    for (int step = 0; step < steps; ++step)
      ptx::WgmmaRows<C.value_size, T>::multiply(output, weights.rest[step], b + 128 * step);
    ptx::wgmma_commit();
  }

  /// Dot products become scores, -infinity where a row does not see the key. Returns the factor that they still lack to
  /// be times log2 e. `first`: the first key.
  static CERMET_DEVICE float finish_scores(const PrefillParams& params, const Rows& own, int kv_head, int first,
                                           float (&scores)[keys / 2]) {
    const attention::Params& p = params.a;
    const float factor = C.plain ? params.scale_log2 : 1.0f;
    if (C.plain && first >= own.seen_by_all.first && first + keys <= own.seen_by_all.last) return factor;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = own.row(h);
      const Visible seen = own.seen(p, row);
      const float slope = !C.plain && p.alibi ? p.alibi[kv_head * C.group + row % C.group] : 0.0f;
      for_scores(scores, h, first, [&](float& score, int, int, int key) {
        if (!C.plain) score = score_of(p, score, slope, own.position + row / C.group - key) * log2_e;
        if (key < seen.first || key >= seen.last) score = -infinity();
      });
    }
    return factor;
  }

  /// Scores, still without `factor`, become weights relative to the new maxima. Returns what the outputs are to be
  /// multiplied with.
  static CERMET_DEVICE Vector<float, 2> update(State& state, float factor, float (&scores)[keys / 2]) {
    Vector<float, 2> shrink;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float top = largest_score(scores, h);
      top = fmaxf(state.maximum[h], top == -infinity() ? top : top * factor);
      const float base = top == -infinity() ? 0.0f : top;
      shrink[h] = state.maximum[h] == top ? 1.0f : exp2_approximate(state.maximum[h] - base);
      state.maximum[h] = top;
      state.sum[h] = fmaf(state.sum[h], shrink[h], to_weights(scores, h, factor, base));
    }
    return shrink;
  }

  static CERMET_DEVICE void pack_weights(const float (&scores)[keys / 2], Weights& weights) {
#pragma unroll
    for (int step = 0; step < steps; ++step)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float a = scores[8 * step + 2 * i], b = scores[8 * step + 2 * i + 1];
        weights.main[step][i] = pack(a, b, T{});
        weights.rest[step][i] = pack_rest<T>(a, b, weights.main[step][i]);
      }
  }

  /// to = from, in other registers: those of `to` belong to instructions under way while those of `from` are filled.
  static CERMET_DEVICE void take(Weights& to, const Weights& from) {
#pragma unroll
    for (int step = 0; step < steps; ++step)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        to.main[step][i] = ptx::wgmma_move(from.main[step][i]);
        to.rest[step][i] = ptx::wgmma_move(from.rest[step][i]);
      }
  }

  static CERMET_DEVICE void store(const attention::Params& p, const Sequence& s, const Rows& own, int kv_head,
                                  const State& state, bool broken) {
    using Out = Element<C.out>;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = state.sum[h] + __shfl_xor_sync(0xffffffffu, state.sum[h], 1);
      total += __shfl_xor_sync(0xffffffffu, total, 2);
      const int row = own.row(h), token = s.begin + row / C.group, head = kv_head * C.group + row % C.group;
      if (row >= own.all) continue;
      const Visible seen = own.seen(p, row);
      const Finish finish =
          finish_row(p.sinks, head, seen.first < seen.last, state.maximum[h] * ln_2, broken ? quiet_nan() : total);
      Out* to = static_cast<Out*>(p.o) + token * p.o_token_stride + head * p.o_head_stride;
      const int first = 2 * (static_cast<int>(lane_index() % 4));
      float any = 0.0f;
#pragma unroll
      for (int d = 0; d < C.value_size / 8; ++d) {
        const float a = state.output[4 * d + 2 * h] * finish.factor,
                    b = state.output[4 * d + 2 * h + 1] * finish.factor;
        any += a - a + (b - b);
        const Vector<Out, 2> pair{from_float<Out>(a), from_float<Out>(b)};
        if (p.aligned_out) *reinterpret_cast<Vector<Out, 2>*>(to + 8 * d + first) = pair;
        else to[8 * d + first] = pair[0], to[8 * d + first + 1] = pair[1];
      }
      if (p.lse && static_cast<int>(lane_index() % 4) == 0) p.lse[head * p.lse_head_stride + token] = finish.lse;
      if (any == 0.0f || finish.factor != finish.factor) continue;
      const ExactRow exact{s.index,
                           token,
                           head,
                           kv_head,
                           own.position + row / C.group,
                           s.key_begin,
                           s.keys,
                           state.maximum[h] * ln_2,
                           finish.factor};
#pragma unroll 1
      for (int i = 0; i < C.value_size / 4; ++i)
        repair<ExactConfig{C.head_size, C.block, C.q, C.kv, C.out}>(p, exact, to, i / 2 * 8 + first + i % 2);
    }
  }
#endif

  template <class Team>
  static CERMET_DEVICE void run(const Params& params, uint32_t item, Team team, char* smem) {
#if CERMET_ARCH >= 900
    const attention::Params& p = params.a;
    const int kv_head = static_cast<int>(item % static_cast<uint32_t>(p.kv_heads)),
              warpgroup = static_cast<int>(team.rank() / 128);
    const TilePlace place = place_of(p, params.tiles - 1 - static_cast<int>(item / static_cast<uint32_t>(p.kv_heads)),
                                     C.group, rows, paged);
    if (place.sequence < 0) return;
    const Sequence s = sequence_of(p, place.sequence, C.block);
    const int all_rows = (s.end - s.begin) * C.group, first_row = place.index * rows,
              used = min_of(rows, all_rows - first_row);
    const int position = s.keys - (s.end - s.begin), own_first = first_row + 64 * warpgroup,
              own_used = min_of(64, all_rows - own_first);
    char *queries = smem, *key_tiles = queries + (split_queries ? 2 : 1) * Q::bytes,
         *value_tiles = key_tiles + hopper_stages * K::bytes;
    // Both ends of the keys that a row sees rise with the row.
    const auto seen_by = [&](int row) { return visible_keys(p, position + row / C.group, s.keys); };
    const Visible seen{seen_by(first_row).first, seen_by(first_row + used - 1).last};
    Rows own{own_first + 16 * static_cast<int>(team.warp() % 4), all_rows, position, s.keys, {0, 0}};
    if (own_used == 64) own.seen_by_all = {seen_by(own_first + 63).first, seen_by(own_first).last};
    State state;
#pragma unroll
    for (int h = 0; h < 2; ++h) state.maximum[h] = -infinity(), state.sum[h] = 0.0f;
#pragma unroll
    for (int d = 0; d < C.value_size / 2; ++d) state.output[d] = 0.0f;
    bool broken = false;
    using KeyCopies = KeyCopy<C.head_size, keys, Team, C.block>;
    int pages[KeyCopies::passes];  // of the keys that were copied last, which are those of the values that are copied
                                   // next
    // One group of copies: values from value_first on and keys from key_first on, in these slots.
    const auto copy_tiles = [&](int value_first, int value_slot, int key_first, int key_slot) {
      if (value_first < seen.last) {
        char* to = value_tiles + value_slot * V::bytes;
        if constexpr (C.head_size == C.value_size) KeyCopies::template copy<V>(p.v, s, kv_head, value_first, pages, to);
        else copy_keys<V, C.value_size, keys, Team, C.block>(p, p.v, s, kv_head, value_first, seen, to, broken);
      }
      if (key_first < seen.last) {
        KeyCopies::find_pages(p, s, key_first, seen, pages, broken);
        KeyCopies::template copy<K>(p.k, s, kv_head, key_first, pages, key_tiles + key_slot * K::bytes);
      }
      ptx::cp_async_commit();
    };
    const auto arrived = [&] {  // what this thread waited for is there for every warpgroup
      ptx::fence_before_bulk();
      team.sync();
    };

    team.sync();  // an earlier item may still be reading
    copy_queries<T, split_queries, QueryElement, Q, C.head_size, rows, Team>(
        queries, p.q, [&](int r) -> const QueryElement* {
          if (r >= used) return nullptr;
          const int token = s.begin + (first_row + r) / C.group, head = kv_head * C.group + (first_row + r) % C.group;
          return static_cast<const QueryElement*>(p.q) + token * p.q_token_stride + head * p.q_head_stride;
        });
    int first = seen.first / keys * keys, slot = 0;
    if (first < seen.last) {
      const char* own_queries = queries + warpgroup * 64 * 128;
      float scores[keys / 2];
      Weights weights;
      copy_tiles(seen.last, 0, first, 0);
      copy_tiles(first, 0, first + keys, 1);
      copy_tiles(first + keys, 1, first + 2 * keys, 2);
      ptx::cp_async_wait<2>();
      arrived();
      multiply_keys(own_queries, key_tiles, scores);
      ptx::wgmma_wait<0>();
#pragma unroll
      for (float& score : scores) ptx::wgmma_touch(score);
      update(state, finish_scores(params, own, kv_head, first, scores), scores);
      pack_weights(scores, weights);
#pragma unroll 1
      for (; first < seen.last; first += keys) {
        // Tile `first` has its weights. Next: its values, and the scores of the tile after it; after the last one they
        // are unused.
        const int next_slot = slot == hopper_stages - 1 ? 0 : slot + 1,
                  last_slot = slot == 0 ? hopper_stages - 1 : slot - 1;
        ptx::cp_async_wait<1>();
        arrived();
        copy_tiles(first + 2 * keys, last_slot, first + 3 * keys, slot);
        multiply_keys(own_queries, key_tiles + next_slot * K::bytes, scores);
        multiply_values(weights, value_tiles + slot * V::bytes, state.output);
        slot = next_slot;
        ptx::wgmma_wait<1>();
#pragma unroll
        for (float& score : scores) ptx::wgmma_touch(score);
        Vector<float, 2> shrink{1.0f, 1.0f};
        Weights next;
        if (first + keys < seen.last)
          shrink = update(state, finish_scores(params, own, kv_head, first + keys, scores), scores);
        pack_weights(scores, next);
        ptx::wgmma_wait<0>();
#pragma unroll
        for (float& x : state.output) ptx::wgmma_touch(x);
        if (__any_sync(0xffffffffu, shrink[0] != 1.0f || shrink[1] != 1.0f)) {
#pragma unroll
          for (int d = 0; d < C.value_size / 2; ++d) state.output[d] *= shrink[d / 2 % 2];
        }
        take(weights, next);
      }
    }
    store(p, s, own, kv_head, state, team.any(broken));
#endif
  }
};

}  // namespace cermet::attention
