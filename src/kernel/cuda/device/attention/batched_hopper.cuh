// Attention over a batch of sequences of one length on Hopper's tensor cores: a warpgroup multiplies 64 rows (queries
// times the heads that share a key-value head) with tiles of up to 112 keys. All keys of a short sequence stay in
// shared memory for all its rows, and everything is asked for at the start. Other blocks on the SM multiply while this
// one computes weights.
#pragma once

#include "kernel/cuda/device/attention/batched_hopper.hpp"
#include "kernel/cuda/device/attention/batched_hopper_rows.cuh"
#include "kernel/cuda/device/attention/prefill_copy.cuh"
#include "kernel/cuda/device/ptx/bulk.cuh"

namespace cermet::attention {

template <BatchedHopperConfig C, ScoreConfig S>
struct BatchedHopperTask {
  using Params = BatchedParams;
  using Part = BatchedHopperRows<C, S>;
  using Operands = typename Part::Operands;
  using T = typename Part::T;
  using Q = typename Part::Q;
  using K = typename Part::K;
  static constexpr int threads = Part::threads, rows = Part::rows, keys = C.keys, tile_bytes = Part::tile_bytes,
                       query_slots = C.row_tiles > 1 ? 2 : 1;

  /// Copies rows that are a stride apart: a thread has the same 16 bytes of every few rows. Rows outside [first, last)
  /// become zeros, because a weight of 0 does not silence a NaN.
  template <class To, int Count>
  static CERMET_DEVICE void copy_evenly(const T* from, int64_t stride, int first, int last, int thread, char* to) {
    constexpr int chunks = C.head_size / 8, step = threads / chunks;
    static_assert(step % 8 == 0 && Count % step == 0);  // so that rows of a thread are swizzled alike
    const int own_row = thread / chunks;
    const T* own = from + own_row * stride + thread % chunks * 8;
    to += To::offset(own_row, thread % chunks);
#pragma unroll
    for (int i = 0; i < Count; i += step, own += step * stride) {
      const bool wanted = own_row + i >= first && own_row + i < last;
      ptx::cp_async<16>(to + i * To::row_bytes, wanted ? own : from, wanted ? 16 : 0);
    }
  }

  /// Waits until at most `pending` groups of copies are under way.
  static CERMET_DEVICE void wait_copies(int pending) {
    if (pending >= 4) ptx::cp_async_wait<4>();
    else if (pending == 3) ptx::cp_async_wait<3>();
    else if (pending == 2) ptx::cp_async_wait<2>();
    else if (pending == 1) ptx::cp_async_wait<1>();
    else ptx::cp_async_wait<0>();
  }

  template <class Team>
  static CERMET_DEVICE void run(const Params& params, uint32_t item, Team team, char* smem) {
#if CERMET_ARCH >= 900
    const BatchItem at = batch_item(params, item);
    const attention::Params p = batch_params<C.type, C.type, C.out>(params, at.batch);
    const Operands operands{params, at.batch};
    const int kv_head = at.kv_head, warp = static_cast<int>(team.warp());
    const int all_rows = p.tokens * C.group, position = p.key_tokens - p.tokens;
    const int item_first = at.tile * C.row_tiles * rows, item_end = min_of(all_rows, item_first + C.row_tiles * rows);
    char* const tiles = smem + query_slots * Q::bytes;
    const auto seen_by = [&](int row) { return visible_keys(p, position + row / C.group, p.key_tokens); };
    const Visible seen{seen_by(item_first).first, seen_by(item_end - 1).last};  // both ends rise with the row
    const auto copy_queries_of = [&](int row_tile) {
      const int first_row = item_first + row_tile * rows;
      char* const to = smem + row_tile % query_slots * Q::bytes;
      const T* const from = static_cast<const T*>(p.q) + kv_head * C.group * p.q_head_stride;
      if constexpr (C.group == 1) {
        copy_evenly<Q, rows>(from + first_row * p.q_token_stride, p.q_token_stride, 0, item_end - first_row,
                             static_cast<int>(team.rank()), to);
      } else {
        copy_rows<Q, C.head_size, rows, Team>(to, p.q, [&](int r) -> const T* {
          const int row = first_row + r;
          return row < item_end ? from + row / C.group * p.q_token_stride + row % C.group * p.q_head_stride : nullptr;
        });
      }
    };
    const auto copy_tile = [&](const KeyList& list, int first, char* to) {
      if (first < seen.last) {
        const T* const from = static_cast<const T*>(list.data) + kv_head * list.head_stride + first * list.row_stride;
        copy_evenly<K, keys>(from, list.row_stride, seen.first - first, seen.last - first,
                             static_cast<int>(team.rank()), to);
      }
      ptx::cp_async_commit();
    };
    const auto copy_pair = [&](int first, int slot) {
      copy_tile(p.k, first, tiles + slot * tile_bytes);
      copy_tile(p.v, first, tiles + slot * tile_bytes + tile_bytes / 2);
    };
    const auto arrived = [&] {  // what this thread waited for is there for all
      ptx::fence_before_bulk();
      team.sync();
    };

    team.sync();  // an earlier item may still be reading
    copy_queries_of(0);
    const int first_key = seen.first / keys * keys;
    constexpr int ahead = C.resident ? C.stages : C.stages - 1;
#pragma unroll
    for (int i = 0; i < ahead; ++i) copy_pair(first_key + i * keys, i);
    if constexpr (C.resident) {
      if (item_first + rows < item_end) copy_queries_of(1);
      ptx::cp_async_commit();
    }
    // What operands do to scores is asked for a tile ahead, so that no tile waits for it.
    typename Part::Terms next_terms = {};
    const auto load_terms = [&](int first_row, int first) {
      if constexpr (Operands::changes) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int row = min_of(first_row + 8 * h + static_cast<int>(lane_index() / 4), all_rows - 1);
          operands.load(kv_head * C.group + row % C.group, row / C.group,
                        first + 2 * static_cast<int>(lane_index() % 4), p.key_tokens, next_terms[h]);
        }
      }
    };
    load_terms(item_first + 16 * warp, first_key);
#pragma unroll 1
    for (int row_tile = 0; item_first + row_tile * rows < item_end; ++row_tile) {
      const int first_row = item_first + row_tile * rows;
      char* const queries = smem + row_tile % query_slots * Q::bytes;
      typename Part::Rows own{first_row + 16 * warp, all_rows, position, p.key_tokens, {0, 0}};
      if (first_row + rows <= item_end)
        own.seen_by_all = {seen_by(first_row + rows - 1).first, seen_by(first_row).last};
      typename Part::State state{{-infinity(), -infinity()}, {}, {}};
      if (C.resident && row_tile > 0) {
        ptx::cp_async_wait<0>();
        arrived();  // and nobody uses the slot of the next queries any more
        if (item_first + (row_tile + 1) * rows < item_end) copy_queries_of(row_tile + 1);
        ptx::cp_async_commit();
      }
#pragma unroll 1
      for (int first = first_key, slot = 0, index = 0; first < seen.last; first += keys, ++index) {
        typename Part::Terms terms;
#pragma unroll
        for (int i = 0; i < keys / 4; ++i)
          terms[i / (keys / 8)][i % (keys / 8)] = next_terms[i / (keys / 8)][i % (keys / 8)];
        const int following = first + keys;
        load_terms(following < seen.last ? own.first : own.first + rows, following < seen.last ? following : first_key);
        if constexpr (!C.resident) {
          ptx::cp_async_wait<2 * ahead - 1>();
          arrived();  // and everyone has used the tile before
          copy_pair(first + ahead * keys, slot == 0 ? C.stages - 1 : slot - 1);
        } else if (row_tile == 0) {
          wait_copies(2 * (C.stages - index));
          arrived();
        }
        const char* const tile = tiles + slot * tile_bytes;
        typename Part::Weights weights;
        {
          typename Part::Scores scores;
          Part::multiply_keys(queries, tile, scores);
          Part::update(state, Part::finish_scores(params, operands, own, kv_head, first, terms, scores), scores);
          Part::pack_weights(scores, weights);
        }
        if constexpr (!C.resident) {
          ptx::cp_async_wait<2 * ahead>();
          arrived();
        } else if (row_tile == 0) {
          wait_copies(2 * (C.stages - index) - 1);
          arrived();
        }
        Part::multiply_values(weights, tile + tile_bytes / 2, state.output);
        if constexpr (Part::single) break;
        slot = slot == C.stages - 1 ? 0 : slot + 1;
      }
      team.sync();  // nobody multiplies these queries any more
      Part::store(p, operands, own, kv_head, state, queries + warp * 16 * 128);
    }
    ptx::cp_async_wait<0>();  // of a block that sees no key
#endif
  }
};

}  // namespace cermet::attention
