// Attention of many queries on the tensor cores of every card from sm_75 (f16) and sm_80 (bf16) on.
//
//   Problem   rows r = (query, head of a group) of a sequence; o[r] = sum_j weight[r, j] v[j] over the keys j that r
//             sees, weight = softmax(scale q[r] . k[j]). Keys in pages or in one list, of 16 bits, or of 8 with scales
//             of heads or tokens. Values may be the first columns of the keys (MLA): then only keys are copied.
//   Tiles     row_warps x 16 or 32 rows of one key-value head against `keys` keys; items with more keys come first.
//   Warps     One warp has a row tile, all keys and all columns: 16 rows of Dv columns are Dv / 2 registers, which ends
//             at 256. Beyond, and where an SM holds one block only, two warps share the rows, and each has every
//             second 16 columns: of q . k, whose two halves they add through shared memory (every score exists once, so
//             both compute the same weights), and of the outputs. Q, K and V are still read once; softmax is computed
//             twice.
//   Shared    16 bits: Q (two parts where its type is not that of K) | stages x (K, V) | exchange
//   memory    8 bits:  Q | K, V in 16 bits | stages x (K, V as stored, scales of the tokens) | exchange
//             Rows are swizzled for ldmatrix (tile_rows.cuh). exchange: 1 KiB a warp for 32 keys, only where two share.
//             bf16, 64 rows, 32 keys, 2 stages: D128 48 KiB, D256 96 KiB, D512 200 KiB; MLA 576 / 512 152 KiB.
//   Loop      wait for a tile, barrier | 8 bits: widen what this thread copied | copy a later tile | 8 bits: barrier |
//             for `step` keys at a time: QK, mask, maximum, weights, PV. Keys that no row of a warp sees are skipped.
//   Exactness A weight is multiplied as two 16-bit parts, which leaves it 16 (bf16) or 22 (f16) significant bits, or as
//             one (values of 16 bits, unless `strict`). Values of 8 bits are exact in 16. Scales of a head multiply
//             scores and results, those of a token scores and weights (in bf16: f16 lacks the range).
//   Cost      2 D + 2 Dv operations a score and part on the tensor cores, (2 D + 2 Dv) / 16 bytes of shared memory. An
//             H100 does 1,200 in a cycle of an SM where a warp has its rows alone, 1,000 where two share them. TFLOPS
//             of 4,096 causal tokens with weights of two parts, and of one: D128 199, 237; D256 208, 249; D512 176,
//             210.
#pragma once

#include "kernel/cuda/device/attention/prefill_warp.cuh"
#include "kernel/cuda/device/attention/prefill_widen.cuh"

namespace cermet::attention {

template <PrefillConfig C, class Operands = PlainScores>
struct PrefillTask {
  using Params = PrefillParams;
  using Warp = PrefillWarp<C, Operands>;
  using T = typename Warp::T;
  using Q = typename Warp::Q;
  using K = typename Warp::K;
  using V = typename Warp::V;
  static constexpr int threads = 32 * C.warps(), rows = C.rows(), keys = C.keys,
                       stage_bytes = C.widens() ? C.stored_bytes() : C.wide_bytes();
  static constexpr bool paged = C.block != 0;
  /// Where copies go: rows of 8 bits as they are, others to their place in a tile.
  template <class Rows, int Size>
  struct CopiedRows {
    static CERMET_DEVICE int offset(int row, int chunk) {
      if constexpr (C.widens()) return StoredRows<Size>::offset(row, chunk);
      else return Rows::offset(row, chunk);
    }
  };
  template <int Size, class Team>
  using Copy = KeyCopy<Size, keys, Team, C.block, C.widens() ? 1 : 2>;

  /// Columns that pad the head size to whole steps must be finite; nothing else ever writes them.
  template <class Rows, int Count, class Team>
  static CERMET_DEVICE void clear_padding(Team team, char* tile) {
    constexpr int chunks = 2 * Warp::k_steps * Warp::columns - C.head_size / 8;
    if constexpr (chunks > 0)
      for (int i = static_cast<int>(team.rank()); i < Count * chunks; i += threads)
        *reinterpret_cast<Vector<uint32_t, 4>*>(tile + Rows::offset(i / chunks, C.head_size / 8 + i % chunks)) = {};
  }

  /// Scales of the tokens of keys first .. first + keys; 0 where copy_keys makes zeros.
  template <class Team>
  static CERMET_DEVICE void copy_scales(const attention::Params& p, const KeyList& list, const Sequence& s, int head,
                                        int first, Visible seen, float* to) {
    for (int r = static_cast<int>(Team::rank()); r < keys; r += Team::size) {
      const int key = first + r;
      int page = -1;
      if (key >= seen.first && key < seen.last) page = p.block_tables[s.index * p.table_stride + key / C.block];
      const bool exists = page >= 0 && page < p.blocks;
      const int64_t at = page * list.scale_page_stride + key % C.block * list.scale_row_stride;
      ptx::cp_async<4>(to + r, list.scale + (exists ? at + head * list.scale_head_stride : 0), exists ? 4 : 0);
    }
  }

  /// Passes of a copy at a time: all, or few where results leave no more registers.
  template <class OneCopy>
  static constexpr int group = C.value_size <= 192 ? OneCopy::passes
                                                   : min_of(C.value_size <= 256 ? 4 : 2, OneCopy::passes);
  template <class OneCopy, class Body>
  static CERMET_DEVICE void each_group(Body&& body) {
#pragma unroll 1
    for (int base = 0; base < OneCopy::passes; base += group<OneCopy>) {
      int pages[group<OneCopy>];
      body(pages, base);
    }
  }

  template <class Team>
  static CERMET_DEVICE void copy_stage(Team, const attention::Params& p, const Sequence& s, int head, int first,
                                       Visible seen, char* stage, bool& broken) {
    using OfKeys = Copy<C.head_size, Team>;
    using OfValues = Copy<C.value_size, Team>;
    using KeyRows = CopiedRows<K, C.head_size>;
    using ValueRows = CopiedRows<V, C.value_size>;
    char* values = stage + (C.widens() ? keys * C.head_size : K::bytes);
    constexpr bool alike = !C.values_in_keys && C.head_size == C.value_size;
    each_group<OfKeys>([&](int(&pages)[group<OfKeys>], int base) {
      OfKeys::find_pages(p, s, first, seen, pages, broken, base);
      OfKeys::template copy<KeyRows>(p.k, s, head, first, pages, stage, base);
      if constexpr (alike) OfValues::template copy<ValueRows>(p.v, s, head, first, pages, values, base);
    });
    if constexpr (!C.values_in_keys && !alike)
      each_group<OfValues>([&](int(&pages)[group<OfValues>], int base) {
        OfValues::find_pages(p, s, first, seen, pages, broken, base);
        OfValues::template copy<ValueRows>(p.v, s, head, first, pages, values, base);
      });
    if constexpr (C.token_scales) {
      copy_scales<Team>(p, p.k, s, head, first, seen, scales_in(stage));
      copy_scales<Team>(p, p.v, s, head, first, seen, scales_in(stage) + keys);
    }
  }
  static CERMET_DEVICE float* scales_in(char* stage) {
    return reinterpret_cast<float*>(stage + C.stored_bytes() - 8 * keys);
  }

  template <class Team>
  static CERMET_DEVICE void widen_stage(const char* stage, char* tile) {
    using Stored = Element<C.kv>;
    constexpr int unroll = C.value_size <= 192 ? 2 : 1;  // registers
    widen_rows<Stored, T, K, C.head_size, keys, unroll, Copy<C.head_size, Team>>(stage, tile);
    if constexpr (!C.values_in_keys)
      widen_rows<Stored, T, V, C.value_size, keys, unroll, Copy<C.value_size, Team>>(stage + keys * C.head_size,
                                                                                     tile + K::bytes);
  }

  template <class Team>
  static CERMET_DEVICE void run(const Params& params, uint32_t item, Team team, char* smem) {
    const attention::Params& p = params.a;
    const int kv_head = static_cast<int>(item % static_cast<uint32_t>(p.kv_heads));
    const TilePlace place = place_of(p, params.tiles - 1 - static_cast<int>(item / static_cast<uint32_t>(p.kv_heads)),
                                     C.group, rows, paged);
    if (place.sequence < 0) return;
    attend(p, params.scale_log2, Operands(), sequence_of(p, place.sequence, C.block), kv_head, place.index * rows, team,
           smem);
  }

  /// The rows of a sequence and key-value head from `first_row` on.
  template <class Team>
  static CERMET_DEVICE void attend(const attention::Params& p, float scale_log2, const Operands& operands,
                                   const Sequence& s, int kv_head, int first_row, Team team, char* smem) {
    const int used = min_of(rows, (s.end - s.begin) * C.group - first_row), position = s.keys - (s.end - s.begin);
    char *const queries = smem, *const wide = queries + C.query_bytes(),
                *const stages = wide + (C.widens() ? C.wide_bytes() : 0),
                *const exchange = stages + C.stages * stage_bytes;
    team.sync();  // an earlier item may still be reading
    clear_padding<Q, rows>(team, queries);
    if constexpr (Warp::split_queries) clear_padding<Q, rows>(team, queries + Q::bytes);
    for (int i = 0; i < (C.widens() ? 1 : C.stages); ++i) clear_padding<K, keys>(team, wide + i * stage_bytes);
    using QueryElement = Element<C.q>;
    copy_queries<T, Warp::split_queries, QueryElement, Q, C.head_size, rows, Team>(
        queries, p.q, [&](int r) -> const QueryElement* {
          if (r >= used) return nullptr;
          const int token = s.begin + (first_row + r) / C.group, head = kv_head * C.group + (first_row + r) % C.group;
          return static_cast<const QueryElement*>(p.q) + token * p.q_token_stride + head * p.q_head_stride;
        });
    // Both ends of the keys that a row sees rise with the row.
    const Visible seen{visible_keys(p, position + first_row / C.group, s.keys).first,
                       visible_keys(p, position + (first_row + used - 1) / C.group, s.keys).last};
    Warp own;
    own.begin(p, s, kv_head, first_row, static_cast<int>(team.warp()));
    bool broken = false;
    int first = seen.first / keys * keys;
    typename Warp::Terms terms;  // of the warp's next keys
    own.load_terms(operands, kv_head, max_of(first, own.some.first / Warp::keys * Warp::keys), terms);
    constexpr int ahead = C.stages - 1;
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      if (first + i * keys < seen.last)
        copy_stage(team, p, s, kv_head, first + i * keys, seen, stages + i * stage_bytes, broken);
      ptx::cp_async_commit();
    }
    for (int stage = 0; first < seen.last; first += keys, stage = stage == ahead ? 0 : stage + 1) {
      ptx::cp_async_wait<ahead - 1>();
      team.sync();  // the tile is there, and everyone has used the one before
      char *const stored = stages + stage * stage_bytes, *const tile = C.widens() ? wide : stored;
      if constexpr (C.widens()) widen_stage<Team>(stored, tile);
      if (first + ahead * keys < seen.last)
        copy_stage(team, p, s, kv_head, first + ahead * keys, seen,
                   stages + (stage == 0 ? ahead : stage - 1) * stage_bytes, broken);
      ptx::cp_async_commit();
      if constexpr (C.widens()) team.sync();  // the tile is widened
#pragma unroll 1
      for (int part = 0; part < keys; part += Warp::keys) {
        const int key = first + part;
        if (key >= own.some.last || key + Warp::keys <= own.some.first) continue;
        const char *k = tile + part * K::row_bytes, *v = tile + (C.values_in_keys ? 0 : K::bytes) + part * V::row_bytes;
        const float* scales = C.token_scales ? scales_in(stored) + part : nullptr;
        typename Warp::Scores scores;
        own.multiply_keys(queries, k, scores);
        own.add_columns(team, exchange, scores);
        if constexpr (C.token_scales) Warp::scale_scores(scales, scores);
        const float factor = own.finish_scores(p, scale_log2, operands, kv_head, key, terms, scores);
        own.load_terms(operands, kv_head, key + Warp::keys, terms);
        own.update(scores, factor);
        own.multiply_values(scores, scales + keys, v);
      }
    }
    ptx::cp_async_wait<0>();  // queries of a block that sees no key
    own.store(p, operands, s, kv_head, team.any(broken));
  }
};

}  // namespace cermet::attention
