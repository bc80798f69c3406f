// Attention of many queries on the tensor cores: a tile of rows (queries times the heads that share a key-value head)
// against tiles of keys that every thread helps to copy while the tile before is used, with online softmax in
// registers. Keys that no row of a warp sees are skipped. A weight is multiplied as two 16-bit parts, which leaves it
// 16 (bf16) or 22 (f16) significant bits. Work items with more keys come first.
#pragma once

#include "kernel/cuda/device/attention/prefill_copy.cuh"
#include "kernel/cuda/device/attention/prefill_warp.cuh"

namespace cermet::attention {

template <PrefillConfig C, class Operands = PlainScores>
struct PrefillTask {
  using Params = PrefillParams;
  using Warp = PrefillWarp<C, Operands>;
  using T = typename Warp::T;
  using Q = typename Warp::Q;
  using K = typename Warp::K;
  using V = typename Warp::V;
  static constexpr int threads = 32 * prefill_warps, rows = prefill_warps * C.warp_rows, keys = C.keys,
                       stage_bytes = K::bytes + V::bytes;
  static constexpr bool paged = C.block != 0;

  /// Columns that pad the head size to a multiple of 16 must be finite; nothing else ever writes them.
  template <class Rows, int Count, class Team>
  static CERMET_DEVICE void clear_padding(Team team, char* tile) {
    if constexpr (C.head_size % 16 != 0)
      for (int r = static_cast<int>(team.rank()); r < Count; r += threads)
        *reinterpret_cast<Vector<uint32_t, 4>*>(tile + Rows::offset(r, C.head_size / 8)) = {};
  }

  template <class Team>
  static CERMET_DEVICE void copy_stage(Team, const attention::Params& p, const Sequence& s, int head, int first,
                                       Visible seen, char* stage, bool& broken) {
    copy_keys<K, C.head_size, keys, Team, C.block>(p, p.k, s, head, first, seen, stage, broken);
    copy_keys<V, C.value_size, keys, Team, C.block>(p, p.v, s, head, first, seen, stage + K::bytes, broken);
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
    const int warp = static_cast<int>(team.warp()), used = min_of(rows, (s.end - s.begin) * C.group - first_row),
              position = s.keys - (s.end - s.begin);
    char *queries = smem, *stages = smem + (Warp::split_queries ? 2 : 1) * Q::bytes;
    team.sync();  // an earlier item may still be reading
    clear_padding<Q, rows>(team, queries);
    if constexpr (Warp::split_queries) clear_padding<Q, rows>(team, queries + Q::bytes);
    for (int i = 0; i < C.stages; ++i) clear_padding<K, keys>(team, stages + i * stage_bytes);
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
    own.begin(p, s, first_row + warp * C.warp_rows);
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
      if (first + ahead * keys < seen.last)
        copy_stage(team, p, s, kv_head, first + ahead * keys, seen,
                   stages + (stage == 0 ? ahead : stage - 1) * stage_bytes, broken);
      ptx::cp_async_commit();
#pragma unroll 1
      for (int part = 0; part < keys; part += Warp::keys) {
        const int key = first + part;
        if (key >= own.some.last || key + Warp::keys <= own.some.first) continue;
        const char *k = stages + stage * stage_bytes + part * K::row_bytes,
                   *v = stages + stage * stage_bytes + K::bytes + part * V::row_bytes;
        typename Warp::Scores scores;
        Warp::multiply_keys(queries + warp * C.warp_rows * Q::row_bytes, k, scores);
        const float factor = own.finish_scores(p, scale_log2, operands, kv_head, key, terms, scores);
        own.load_terms(operands, kv_head, key + Warp::keys, terms);
        own.update(scores, factor);
        own.multiply_values(scores, v);
      }
    }
    ptx::cp_async_wait<0>();  // queries of a block that sees no key
    own.store(p, operands, s, kv_head, team.any(broken));
  }
};

}  // namespace cermet::attention
