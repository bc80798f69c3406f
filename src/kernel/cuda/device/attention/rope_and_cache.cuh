// rope_and_cache: a few lanes normalize and rotate one head of q or k of one token in registers and store it in the
// result or its slot, or store one head of v. A position outside the tables gives NaN. The first `cache_items` items
// have all heads of k and v of `item_tokens` tokens each, because one look at later tokens' slots does for all of them;
// the others have `heads_each` heads of q.
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
  static constexpr int cache_heads = 2 * C.kv_heads, heads_each = C.threads / shape.lanes;

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

  template <class Vector>
  static CERMET_DEVICE void rotate(const Params& p, int64_t token, Vector& x) {
    const int64_t position = static_cast<const Element<C.position>*>(p.positions)[token];
    const bool legal = position >= 0 && position < p.table_rows;
    const Table* cos = legal ? static_cast<const Table*>(p.cos) + position * p.cos_stride : nullptr;
    x.rotate(cos, legal ? static_cast<const Table*>(p.sin) + position * p.sin_stride : nullptr);
  }

  template <int Pairs>
  static CERMET_DEVICE void rotate_query(const Params& p, int64_t unit) {
    const int64_t token = unit / C.q_heads;
    if (token >= p.tokens) return;
    const int head = static_cast<int>(unit - token * C.q_heads);
    Head<shape, Pairs, X> x;
    x.load(head_of(p.q, token, head));
    if (p.q.weight) x.normalize(static_cast<const Element<C.q_weight>*>(p.q.weight), p.eps, p.weight_offset);
    rotate(p, token, x);
    x.store(static_cast<Out*>(p.out) + token * p.out_token_stride + head * p.out_head_stride,
            [](float y) { return from_float<Out>(y); });
  }

  /// Keys and values of tokens first .. first + count. Slots are collected after the first heads are loaded.
  template <int Pairs, int Elements, class Team>
  static CERMET_DEVICE void write_cache(const Params& p, int64_t first, int count, Team team, int64_t* memory) {
    if (static_cast<int>(team.rank()) < count)
      ptx::touch(static_cast<const Element<C.slot>*>(p.slots) + first + team.rank());
    const int64_t* slots = nullptr;
    for (int unit = 0; unit < count * cache_heads; unit += heads_each) {
      const int own = unit + static_cast<int>(team.rank()) / shape.lanes, index = own / cache_heads,
                cache_head = own - index * cache_heads, head = cache_head % C.kv_heads;
      const bool used = index < count, is_v = cache_head >= C.kv_heads;
      const int64_t token = first + index;
      Head<shape, Pairs, X> x;
      Value<C.value_size, shape.lanes, Elements, X> value;
      if (used && is_v) value.load(head_of(p.v, token, head));
      if (used && !is_v) {
        x.load(head_of(p.k, token, head));
        if (p.k.weight) x.normalize(static_cast<const Element<C.k_weight>*>(p.k.weight), p.eps, p.weight_offset);
        rotate(p, token, x);
      }
      int64_t slot = -1;
      if (p.tokens == 1) {  // nothing can overwrite it
        slot = static_cast<const Element<C.slot>*>(p.slots)[0];
        if (slot >= p.blocks * C.block) slot = -1;
      } else {
        if (!slots)
          slots = kv_cache::collect_slots<Element<C.slot>>(team, p.slots, first, count, p.tokens, p.blocks * C.block,
                                                           memory);
        if (used) slot = slots[index];
      }
      if (!used || slot < 0) continue;
      if (is_v) store<C.columns>(value, p.v_cache, slot, head);
      else store<false>(x, p.k_cache, slot, head);
    }
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    if (item >= p.cache_items) {
      const int64_t unit = static_cast<int64_t>(item - p.cache_items) * heads_each + team.rank() / shape.lanes;
      return rotate_query < C.aligned ? pairs : 1 > (p, unit);
    }
    const int64_t first = static_cast<int64_t>(item) * p.item_tokens;
    const int count = static_cast<int>(min_of(static_cast<int64_t>(p.item_tokens), p.tokens - first));
    write_cache<C.aligned ? pairs : 1, C.aligned ? elements : 1>(p, first, count, team,
                                                                 reinterpret_cast<int64_t*>(smem));
  }
};

}  // namespace cermet::rope_and_cache
