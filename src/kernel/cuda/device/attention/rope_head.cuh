// One head of a token in the registers of a few neighbouring lanes: normalized, rotated and stored.
#pragma once

#include "kernel/cuda/device/attention/cache_slots.cuh"
#include "kernel/cuda/device/attention/rope_and_cache.hpp"
#include "kernel/cuda/device/attention/rotate_pair.cuh"

namespace cermet::rope_and_cache {

/// Elements of a head, pairs that are rotated, lanes that share a head; neox: pairs are (i, half + i), otherwise (2 i,
/// 2 i + 1).
struct HeadShape {
  int size, half, lanes;
  bool neox;
};

/// `N` elements in accesses of at most 16 bytes.
template <int N, class T>
CERMET_DEVICE void load_elements(const T* from, T (&x)[N]) {
  constexpr int step = min_of(N, per_16_bytes<T>);
#pragma unroll
  for (int i = 0; i < N; i += step) {
    const auto part = *reinterpret_cast<const Vector<T, step>*>(from + i);
#pragma unroll
    for (int j = 0; j < step; ++j) x[i + j] = part[j];
  }
}
template <int N, class T>
CERMET_DEVICE void store_elements(T* to, const T (&x)[N]) {
  constexpr int step = min_of(N, per_16_bytes<T>);
#pragma unroll
  for (int i = 0; i < N; i += step) {
    Vector<T, step> part;
#pragma unroll
    for (int j = 0; j < step; ++j) part[j] = x[i + j];
    *reinterpret_cast<Vector<T, step>*>(to + i) = part;
  }
}

/// Reduction over the lanes of a head; the other lanes of the warp may be elsewhere.
template <class Reduction, int Lanes>
CERMET_DEVICE float reduce_head(float x) {
  const uint32_t mask = Lanes == 32 ? 0xffffffffu : ((1u << Lanes % 32) - 1u) << (lane_index() / Lanes * Lanes);
#pragma unroll
  for (int offset = Lanes / 2; offset > 0; offset /= 2) x = Reduction::combine(x, __shfl_xor_sync(mask, x, offset, 32));
  return x;
}

/// Pair i of piece j is pair (lanes * j + lane) * Width + i of the head; the elements after the pairs follow, one for
/// each lane. A piece that begins within the pairs ends within them.
template <HeadShape H, int Width, class X>
struct Head {
  static constexpr int pieces = max_of(1, static_cast<int>(div_up(H.half, H.lanes*Width))), tail = H.size - 2 * H.half,
                       tail_pieces = max_of(1, static_cast<int>(div_up(tail, H.lanes)));
  float a[pieces][Width], b[pieces][Width], rest[tail_pieces];

  static CERMET_DEVICE int lane() { return static_cast<int>(lane_index() % H.lanes); }
  static CERMET_DEVICE int pair(int piece) { return (H.lanes * piece + lane()) * Width; }

  /// Calls body(piece) for the pieces in which this lane has pairs, and tail_body(piece, element) for the elements
  /// after the pairs.
  template <class Body, class TailBody>
  static CERMET_DEVICE void each(Body&& body, TailBody&& tail_body) {
#pragma unroll
    for (int j = 0; j < pieces; ++j)
      if (pair(j) < H.half) body(j);
#pragma unroll
    for (int j = 0; j < tail_pieces; ++j)
      if (H.lanes * j + lane() < tail) tail_body(j, 2 * H.half + H.lanes * j + lane());
  }

  /// Pairs first .. first + Width of a vector of T.
  template <class T>
  static CERMET_DEVICE void read(const T* from, int first, float (&low)[Width], float (&high)[Width]) {
    T x[Width], y[Width];
    if constexpr (H.neox) {
      load_elements<Width>(from + first, x);
      load_elements<Width>(from + H.half + first, y);
#pragma unroll
      for (int i = 0; i < Width; ++i) low[i] = to_float(x[i]), high[i] = to_float(y[i]);
    } else if constexpr (Width == 1) {
      low[0] = to_float(from[2 * first]),
      high[0] = to_float(from[2 * first + 1]);  // a pair need not be aligned as a whole
    } else {
      T both[2 * Width];
      load_elements<2 * Width>(from + 2 * first, both);
#pragma unroll
      for (int i = 0; i < Width; ++i) low[i] = to_float(both[2 * i]), high[i] = to_float(both[2 * i + 1]);
    }
  }

  CERMET_DEVICE void load(const X* from) {
    each([&](int j) { read(from, pair(j), a[j], b[j]); }, [&](int j, int d) { rest[j] = to_float(from[d]); });
  }

  template <class W>
  CERMET_DEVICE void normalize(const W* weight, float eps, float offset) {
    float squares = 0.0f;
    each(
        [&](int j) {
#pragma unroll
          for (int i = 0; i < Width; ++i) squares = fmaf(a[j][i], a[j][i], fmaf(b[j][i], b[j][i], squares));
        },
        [&](int j, int) { squares = fmaf(rest[j], rest[j], squares); });
    const float scale = 1.0f / sqrtf(reduce_head<Sum, H.lanes>(squares) / static_cast<float>(H.size) + eps);
    each(
        [&](int j) {
          float low[Width], high[Width];
          read(weight, pair(j), low, high);
#pragma unroll
          for (int i = 0; i < Width; ++i) a[j][i] *= scale * (low[i] + offset), b[j][i] *= scale * (high[i] + offset);
        },
        [&](int j, int d) { rest[j] *= scale * (to_float(weight[d]) + offset); });
  }

  /// By the angles of a row of the tables; null: by NaN.
  template <class T>
  CERMET_DEVICE void rotate(const T* cos, const T* sin) {
    each(
        [&](int j) {
          T c[Width], s[Width];
          if (cos) {
            load_elements<Width>(cos + pair(j), c);
            load_elements<Width>(sin + pair(j), s);
          }
#pragma unroll
          for (int i = 0; i < Width; ++i) {
            const float x = cos ? to_float(c[i]) : quiet_nan(), y = cos ? to_float(s[i]) : quiet_nan();
            rotate_pair(a[j][i], b[j][i], x, y);
          }
        },
        [](int, int) {});
  }

  CERMET_DEVICE float largest() const {
    float top = 0.0f;
    each(
        [&](int j) {
#pragma unroll
          for (int i = 0; i < Width; ++i) top = Maximum::combine(fabsf(a[j][i]), Maximum::combine(fabsf(b[j][i]), top));
        },
        [&](int j, int) { top = Maximum::combine(fabsf(rest[j]), top); });
    return reduce_head<Maximum, H.lanes>(top);
  }

  /// Stores convert(element) everywhere.
  template <class T, class Convert>
  CERMET_DEVICE void store(T* to, Convert&& convert) const {
    each(
        [&](int j) {
          if constexpr (H.neox) {
            T low[Width], high[Width];
#pragma unroll
            for (int i = 0; i < Width; ++i) low[i] = convert(a[j][i]), high[i] = convert(b[j][i]);
            store_elements<Width>(to + pair(j), low);
            store_elements<Width>(to + H.half + pair(j), high);
          } else if constexpr (Width == 1) {
            to[2 * pair(j)] = convert(a[j][0]), to[2 * pair(j) + 1] = convert(b[j][0]);
          } else {
            T both[2 * Width];
#pragma unroll
            for (int i = 0; i < Width; ++i) both[2 * i] = convert(a[j][i]), both[2 * i + 1] = convert(b[j][i]);
            store_elements<2 * Width>(to + 2 * pair(j), both);
          }
        },
        [&](int j, int d) { to[d] = convert(rest[j]); });
  }
};

/// The lanes of a head store a value [Size] in its slot.
template <int Size, int Lanes, int Width, class X>
struct Value {
  static constexpr int pieces = static_cast<int>(div_up(Size, Lanes* Width));
  X x[pieces][Width];

  static CERMET_DEVICE int element(int piece) {
    return (Lanes * piece + static_cast<int>(lane_index() % Lanes)) * Width;
  }
  CERMET_DEVICE void load(const X* from) {
#pragma unroll
    for (int j = 0; j < pieces; ++j)
      if (element(j) < Size) load_elements<Width>(from + element(j), x[j]);
  }
  CERMET_DEVICE float largest() const {
    float top = 0.0f;
#pragma unroll
    for (int j = 0; j < pieces; ++j)
#pragma unroll
      for (int i = 0; i < Width; ++i)
        if (element(j) < Size) top = Maximum::combine(fabsf(to_float(x[j][i])), top);
    return reduce_head<Maximum, Lanes>(top);
  }
  template <class T, class Convert>
  CERMET_DEVICE void store(T* to, Convert&& convert) const {
#pragma unroll
    for (int j = 0; j < pieces; ++j) {
      T y[Width];
#pragma unroll
      for (int i = 0; i < Width; ++i) y[i] = convert(to_float(x[j][i]));
      if (element(j) < Size) store_elements<Width>(to + element(j), y);
    }
  }
  /// The same where elements are `step` apart.
  template <class T, class Convert>
  CERMET_DEVICE void store_column(T* to, int64_t step, Convert&& convert) const {
#pragma unroll
    for (int j = 0; j < pieces; ++j)
#pragma unroll
      for (int i = 0; i < Width; ++i)
        if (element(j) < Size) to[(element(j) + i) * step] = convert(to_float(x[j][i]));
  }
};

}  // namespace cermet::rope_and_cache
