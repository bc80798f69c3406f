// rope_and_cache: a few lanes normalize and rotate one head of q or k of one token in registers and store it in the
// result or its slot, or store one head of v. A position outside the tables gives NaN. Work item i has the heads i *
// heads_each .. of all tokens' q, k and v in this order.
#pragma once

#include "kernel/cuda/device/attention/rope_head.cuh"
#include "kernel/cuda/device/ptx/global.cuh"

namespace cermet::rope_and_cache {

template <Config C>
struct Task {
  using Params = rope_and_cache::Params;
  using X = Element<C.x>;
  using Out = Element<C.out>;
  using To = Element<C.cache>;
  using Table = Element<C.table>;
  static constexpr int pairs = rope_width(C.half, sizeof(X), C.neox), elements = value_width(C.value_size, sizeof(X));
  static constexpr HeadShape shape{C.head_size, C.half, head_lanes(C.half, pairs), C.neox};
  static constexpr int all_heads = C.q_heads + 2 * C.kv_heads, heads_each = C.threads / shape.lanes;

  static CERMET_DEVICE const X* head_of(const Heads& heads, int64_t token, int head) {
    return static_cast<const X*>(heads.x) + token * heads.token_stride + head * heads.head_stride;
  }

  /// Scale of a vector: given, or computed from the vector's largest magnitude and filled in.
  static CERMET_DEVICE float scale_of(float* at, float largest) {
    if constexpr (C.scales == Scales::none) {
      return 1.0f;
    } else if constexpr (C.scales == Scales::head) {
      return *at;
    } else {
      const float scale = largest / kv_cache::largest_quantized(To{});
      if (lane_index() % shape.lanes == 0) *at = scale;
      return scale;
    }
  }

  /// Stores what is in registers in its slot.
  template <bool Columns, class Vector>
  static CERMET_DEVICE void store(const Vector& x, const kv_cache::Cache& cache, int64_t slot, int head) {
    const auto place = kv_cache::slot_place<To, Columns>(cache, slot, C.block, head);
    float largest = 0.0f;
    if constexpr (C.scales == Scales::token) largest = x.largest();
    const float scale = scale_of(place.scale, largest);
    const auto encode = [&](float y) { return kv_cache::encode<C.scales, To>(y, scale); };
    if constexpr (Columns) x.store_column(place.vector, place.step, encode);
    else x.store(place.vector, encode);
  }

  /// `collect()` gives the token's slot, or a negative number; all threads of the team call it.
  template <int Pairs, int Elements, class Collect>
  static CERMET_DEVICE void run_head(const Params& p, int64_t token, int head, Collect&& collect) {
    const bool used = token < p.tokens, is_q = head < C.q_heads, is_v = head >= C.q_heads + C.kv_heads;
    const int kv_head = is_q ? 0 : (head - C.q_heads) % C.kv_heads;
    Head<shape, Pairs, X> x;
    Value<C.value_size, shape.lanes, Elements, X> value;
    if (used && is_v) value.load(head_of(p.v, token, kv_head));
    if (used && !is_v) {
      const int64_t position = static_cast<const Element<C.position>*>(p.positions)[token];
      x.load(is_q ? head_of(p.q, token, head) : head_of(p.k, token, kv_head));
      if (is_q && p.q.weight) x.normalize(static_cast<const Element<C.q_weight>*>(p.q.weight), p.eps, p.weight_offset);
      if (!is_q && p.k.weight) x.normalize(static_cast<const Element<C.k_weight>*>(p.k.weight), p.eps, p.weight_offset);
      const bool legal = position >= 0 && position < p.table_rows;
      const Table* cos = legal ? static_cast<const Table*>(p.cos) + position * p.cos_stride : nullptr;
      x.rotate(cos, legal ? static_cast<const Table*>(p.sin) + position * p.sin_stride : nullptr);
      if (is_q)
        x.store(static_cast<Out*>(p.out) + token * p.out_token_stride + head * p.out_head_stride,
                [](float y) { return from_float<Out>(y); });
    }
    const int64_t slot = collect();
    if (!used || is_q || slot < 0) return;
    if (is_v) store<C.columns>(value, p.v_cache, slot, kv_head);
    else store<false>(x, p.k_cache, slot, kv_head);
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    const int64_t first_unit = static_cast<int64_t>(item) * heads_each, unit = first_unit + team.rank() / shape.lanes,
                  first = first_unit / all_heads;
    const int64_t last = min_of(p.tokens, (first_unit + heads_each - 1) / all_heads + 1), token = unit / all_heads;
    const int first_head = static_cast<int>(first_unit - first * all_heads);
    const bool only_q = first_head + heads_each <= C.q_heads;  // nothing to store in the cache
    if (!only_q && token < p.tokens) ptx::touch(static_cast<const Element<C.slot>*>(p.slots) + token);
    const auto collect = [&]() -> int64_t {
      if (only_q) return -1;
      if (p.tokens == 1) {  // nothing can overwrite it
        const int64_t slot = static_cast<const Element<C.slot>*>(p.slots)[0];
        return slot < p.blocks * C.block ? slot : -1;
      }
      const int64_t* slots =
          kv_cache::collect_slots<Element<C.slot>>(team, p.slots, first, static_cast<int>(last - first), p.tokens,
                                                   p.blocks * C.block, reinterpret_cast<int64_t*>(smem));
      return token < last ? slots[token - first] : -1;
    };
    const int head = static_cast<int>(unit - token * all_heads);
    run_head<C.aligned ? pairs : 1, C.aligned ? elements : 1>(p, token, head, collect);
  }
};

}  // namespace cermet::rope_and_cache
