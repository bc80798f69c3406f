// rope_and_cache: a warp normalises and rotates one head of q or k of one token in registers and stores it in the result or its slot, or stores one head
// of v. A position outside the tables gives NaN.
#pragma once

#include "kernel/cuda/device/attention/cache_slots.cuh"
#include "kernel/cuda/device/attention/rope_and_cache.hpp"

namespace cermet::rope_and_cache {

using kv_cache::Scales;

struct Config {
  int head_size, half, value_size, q_heads, kv_heads, block;  ///< half: pairs that are rotated; block: tokens of a page
  DType x, out, cache, table, q_weight, k_weight, position, slot;
  bool neox;
  Scales scales;
  int threads;
};

/// One head in the registers of a warp: pair i of piece j is pair (32 j + lane) * Width + i of the head; the elements behind the pairs follow every 32nd.
template <Config C, int Width>
struct Head {
  using X = Element<C.x>;
  static constexpr int pieces = static_cast<int>(div_up(C.half, 32 * Width)), tail = C.head_size - 2 * C.half, tail_pieces = static_cast<int>(div_up(tail, 32));
  float a[pieces > 0 ? pieces : 1][Width], b[pieces > 0 ? pieces : 1][Width], rest[tail_pieces > 0 ? tail_pieces : 1];

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x % 32); }
  static __device__ __forceinline__ int pair(int piece) { return (32 * piece + lane()) * Width; }

  /// Calls body(piece) for the pieces in which this lane has pairs, and tail_body(piece, element) for the elements behind the pairs.
  template <class Body, class TailBody>
  static __device__ __forceinline__ void each(Body&& body, TailBody&& tail_body) {
#pragma unroll
    for (int j = 0; j < pieces; ++j)
      if (pair(j) < C.half) body(j);
#pragma unroll
    for (int j = 0; j < tail_pieces; ++j)
      if (32 * j + lane() < tail) tail_body(j, 2 * C.half + 32 * j + lane());
  }

  /// Reads pairs of a vector of T: neighbouring halves (neox) or neighbouring elements.
  template <class T>
  static __device__ __forceinline__ void read(const T* from, int first, float (&low)[Width], float (&high)[Width]) {
    if constexpr (C.neox) {
      const auto x = *reinterpret_cast<const Vector<T, Width>*>(from + first), y = *reinterpret_cast<const Vector<T, Width>*>(from + C.half + first);
#pragma unroll
      for (int i = 0; i < Width; ++i) low[i] = to_float(x[i]), high[i] = to_float(y[i]);
    } else {
#pragma unroll
      for (int i = 0; i < Width; ++i) low[i] = to_float(from[2 * (first + i)]), high[i] = to_float(from[2 * (first + i) + 1]);
    }
  }

  __device__ __forceinline__ void load(const X* from) {
    each([&](int j) { read(from, pair(j), a[j], b[j]); }, [&](int j, int d) { rest[j] = to_float(from[d]); });
  }

  template <class W>
  __device__ __forceinline__ void normalize(const W* weight, float eps, float offset) {
    float squares = 0.0f;
    each(
        [&](int j) {
#pragma unroll
          for (int i = 0; i < Width; ++i) squares = fmaf(a[j][i], a[j][i], fmaf(b[j][i], b[j][i], squares));
        },
        [&](int j, int) { squares = fmaf(rest[j], rest[j], squares); });
    const float scale = 1.0f / sqrtf(warp_reduce<Sum>(squares) / static_cast<float>(C.head_size) + eps);
    each(
        [&](int j) {
          float low[Width], high[Width];
          read(weight, pair(j), low, high);
#pragma unroll
          for (int i = 0; i < Width; ++i) a[j][i] *= scale * (low[i] + offset), b[j][i] *= scale * (high[i] + offset);
        },
        [&](int j, int d) { rest[j] *= scale * (to_float(weight[d]) + offset); });
  }

  template <class T>
  __device__ __forceinline__ void rotate(const T* cos, const T* sin) {
    each(
        [&](int j) {
#pragma unroll
          for (int i = 0; i < Width; ++i) {
            const float c = cos ? to_float(cos[pair(j) + i]) : quiet_nan(), s = cos ? to_float(sin[pair(j) + i]) : quiet_nan();
            const float rotated = a[j][i] * c - b[j][i] * s;
            b[j][i] = b[j][i] * c + a[j][i] * s;
            a[j][i] = rotated;
          }
        },
        [](int, int) {});
  }

  __device__ __forceinline__ float largest() const {
    float top = 0.0f;
    each(
        [&](int j) {
#pragma unroll
          for (int i = 0; i < Width; ++i) top = Maximum::combine(fabsf(a[j][i]), Maximum::combine(fabsf(b[j][i]), top));
        },
        [&](int j, int) { top = Maximum::combine(fabsf(rest[j]), top); });
    return warp_reduce<Maximum>(top);
  }

  /// Stores convert(element) everywhere.
  template <class T, class Convert>
  __device__ __forceinline__ void store(T* to, Convert&& convert) const {
    each(
        [&](int j) {
          Vector<T, Width> low, high;
#pragma unroll
          for (int i = 0; i < Width; ++i) low[i] = convert(a[j][i]), high[i] = convert(b[j][i]);
          if constexpr (C.neox) {
            *reinterpret_cast<Vector<T, Width>*>(to + pair(j)) = low;
            *reinterpret_cast<Vector<T, Width>*>(to + C.half + pair(j)) = high;
          } else {
#pragma unroll
            for (int i = 0; i < Width; ++i) to[2 * (pair(j) + i)] = low[i], to[2 * (pair(j) + i) + 1] = high[i];
          }
        },
        [&](int j, int d) { to[d] = convert(rest[j]); });
  }
};

template <Config C>
struct Task {
  using Params = rope_and_cache::Params;
  using X = Element<C.x>;
  using Out = Element<C.out>;
  using To = Element<C.cache>;
  using Table = Element<C.table>;

  static __device__ __forceinline__ const X* head_of(const Heads& heads, int64_t token, int head) {
    return static_cast<const X*>(heads.x) + token * heads.token_stride + head * heads.head_stride;
  }

  /// A head of q (head < q_heads) or of k.
  template <int Width>
  static __device__ __forceinline__ void rotate(const Params& p, int64_t token, int head, int64_t slot) {
    const bool is_q = head < C.q_heads;
    const int kv_head = head - C.q_heads;
    const int64_t position = static_cast<const Element<C.position>*>(p.positions)[token];
    Head<C, Width> x;
    x.load(is_q ? head_of(p.q, token, head) : head_of(p.k, token, kv_head));
    if (is_q && p.q.weight) x.normalize(static_cast<const Element<C.q_weight>*>(p.q.weight), p.eps, p.weight_offset);
    if (!is_q && p.k.weight) x.normalize(static_cast<const Element<C.k_weight>*>(p.k.weight), p.eps, p.weight_offset);
    const bool legal = position >= 0 && position < p.table_rows;
    const Table* cos = legal ? static_cast<const Table*>(p.cos) + position * p.cos_stride : nullptr;
    x.rotate(cos, legal ? static_cast<const Table*>(p.sin) + position * p.sin_stride : nullptr);
    if (is_q) {
      x.store(static_cast<Out*>(p.out) + token * p.out_token_stride + head * p.out_head_stride, [](float y) { return from_float<Out>(y); });
    } else {
      const auto place = kv_cache::slot_place<To>(p.k_cache, slot, C.block, kv_head);
      const float scale = kv_cache::scale_of<C.scales, To>(place.scale, C.scales == Scales::token ? x.largest() : 0.0f);
      x.store(place.vector, [&](float y) { return kv_cache::encode<C.scales, To>(y, scale); });
    }
  }

  static __device__ void run(const Params& p, uint32_t item, char* smem) {
    auto* slots = reinterpret_cast<int64_t*>(smem);  // [item_tokens]
    constexpr int all_heads = C.q_heads + 2 * C.kv_heads;
    const int groups = (all_heads + p.item_heads - 1) / p.item_heads;
    const int64_t first = static_cast<int64_t>(item / static_cast<uint32_t>(groups)) * p.item_tokens;
    const int first_head = static_cast<int>(item % static_cast<uint32_t>(groups)) * p.item_heads, heads = min_of(p.item_heads, all_heads - first_head);
    const int count = static_cast<int>(min_of(static_cast<int64_t>(p.item_tokens), p.tokens - first));
    kv_cache::collect_slots<Element<C.slot>, C.threads>(p.slots, first, count, p.tokens, p.blocks * C.block, slots);
    for (int unit = static_cast<int>(threadIdx.x / 32); unit < count * heads; unit += C.threads / 32) {
      const int64_t token = first + unit / heads, slot = slots[unit / heads];
      const int head = first_head + unit % heads, value_head = head - C.q_heads - C.kv_heads;
      if (head >= C.q_heads && slot < 0) continue;
      if (value_head >= 0) {
        constexpr int width = C.value_size % 4 == 0 ? 4 : 1;
        const auto place = kv_cache::slot_place<To>(p.v_cache, slot, C.block, value_head);
        if (p.aligned) kv_cache::write_vector<C.value_size, width, C.scales>(head_of(p.v, token, value_head), place);
        else kv_cache::write_vector<C.value_size, 1, C.scales>(head_of(p.v, token, value_head), place);
      } else {
        constexpr int width = C.half % 2 == 0 ? 2 : 1;
        if (p.aligned) rotate<width>(p, token, head, slot);
        else rotate<1>(p, token, head, slot);
      }
    }
  }
};

}  // namespace cermet::rope_and_cache
