// rope: a thread rotates one vector of neighbouring pairs of one head, or copies a vector after them. A position
// outside the tables gives NaN.
#pragma once

#include "kernel/cuda/device/attention/rope.hpp"
#include "kernel/cuda/device/team.cuh"

namespace cermet::rope {

template <Config C, int Pairs>
struct Unit {
  using X = Element<C.x>;
  using Y = Element<C.y>;
  using Table = Element<C.table>;
  static constexpr int rotations = C.half / Pairs, copies = (C.head_size - 2 * C.half) / Pairs,
                       of_head = rotations + copies;
  static constexpr int of_token = of_head * (C.q_heads + C.k_heads);

  /// Rotates pairs first .. first + Pairs; cos is null for a position outside the tables.
  static CERMET_DEVICE void rotate(const X* x, Y* y, int first, const Table* cos, const Table* sin, float factor) {
    float a[Pairs], b[Pairs];
    load_pairs(x, first, a, b);
#pragma unroll
    for (int i = 0; i < Pairs; ++i) {
      const float c = cos ? to_float(cos[first + i]) : quiet_nan(), s = cos ? to_float(sin[first + i]) : quiet_nan(),
                  direction = C.inverse ? -s : s;
      const float rotated = a[i] * c - b[i] * direction;
      b[i] = b[i] * c + a[i] * direction;
      a[i] = rotated;
      if constexpr (C.scaled) a[i] *= factor, b[i] *= factor;
    }
    store_pairs(y, first, a, b);
  }

  static CERMET_DEVICE void load_pairs(const X* x, int first, float (&a)[Pairs], float (&b)[Pairs]) {
    if constexpr (C.neox) {
      const auto low = *reinterpret_cast<const Vector<X, Pairs>*>(x + first),
                 high = *reinterpret_cast<const Vector<X, Pairs>*>(x + C.half + first);
#pragma unroll
      for (int i = 0; i < Pairs; ++i) a[i] = to_float(low[i]), b[i] = to_float(high[i]);
    } else if constexpr (Pairs == 1) {
      a[0] = to_float(x[2 * first]), b[0] = to_float(x[2 * first + 1]);  // a pair need not be aligned as a whole
    } else {
      const auto both = *reinterpret_cast<const Vector<X, 2 * Pairs>*>(x + 2 * first);
#pragma unroll
      for (int i = 0; i < Pairs; ++i) a[i] = to_float(both[2 * i]), b[i] = to_float(both[2 * i + 1]);
    }
  }

  static CERMET_DEVICE void store_pairs(Y* y, int first, const float (&a)[Pairs], const float (&b)[Pairs]) {
    if constexpr (C.neox) {
      Vector<Y, Pairs> low, high;
#pragma unroll
      for (int i = 0; i < Pairs; ++i) low[i] = from_float<Y>(a[i]), high[i] = from_float<Y>(b[i]);
      *reinterpret_cast<Vector<Y, Pairs>*>(y + first) = low;
      *reinterpret_cast<Vector<Y, Pairs>*>(y + C.half + first) = high;
    } else if constexpr (Pairs == 1) {
      y[2 * first] = from_float<Y>(a[0]), y[2 * first + 1] = from_float<Y>(b[0]);
    } else {
      Vector<Y, 2 * Pairs> both;
#pragma unroll
      for (int i = 0; i < Pairs; ++i) both[2 * i] = from_float<Y>(a[i]), both[2 * i + 1] = from_float<Y>(b[i]);
      *reinterpret_cast<Vector<Y, 2 * Pairs>*>(y + 2 * first) = both;
    }
  }

  static CERMET_DEVICE void run(const Params& p, int64_t index) {
    const int64_t token = index / of_token;
    if (token >= p.tokens) return;
    const int unit = static_cast<int>(index % of_token), head = unit / of_head, place = unit % of_head;
    const bool is_q = head < C.q_heads;
    const Heads& heads = is_q ? p.q : p.k;
    const int row = is_q ? head : head - C.q_heads;
    const X* x =
        static_cast<const X*>(heads.x) + token * heads.x_token_stride + row * heads.x_head_stride;  // [head_size]
    Y* y = static_cast<Y*>(heads.y) + token * heads.y_token_stride + row * heads.y_head_stride;
    if (place < rotations) {
      const int64_t position = static_cast<const Element<C.position>*>(p.positions)[token * p.position_stride];
      const bool legal = position >= 0 && position < p.table_rows;
      const Table* cos = legal ? static_cast<const Table*>(p.cos) + position * p.cos_stride : nullptr;
      rotate(x, y, place * Pairs, cos, legal ? static_cast<const Table*>(p.sin) + position * p.sin_stride : nullptr,
             heads.factor);
    } else {
      const int first = 2 * C.half + (place - rotations) * Pairs;
      const auto from = *reinterpret_cast<const Vector<X, Pairs>*>(x + first);
      Vector<Y, Pairs> to;
#pragma unroll
      for (int i = 0; i < Pairs; ++i)
        to[i] = from_float<Y>(C.scaled ? to_float(from[i]) * heads.factor : to_float(from[i]));
      *reinterpret_cast<Vector<Y, Pairs>*>(y + first) = to;
    }
  }
};

template <Config C>
struct Task {
  using Params = rope::Params;
  static constexpr int pairs =
      vector_pairs(C.head_size, C.half, max_of(sizeof(Element<C.x>), sizeof(Element<C.y>)), C.neox);

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t first = static_cast<int64_t>(item) * C.threads * pairs;  // units of one pair
    if (pairs > 1 && p.aligned) {
      Unit<C, pairs>::run(p, first / pairs + team.rank());
    } else {
      for (int i = 0; i < pairs; ++i) Unit<C, 1>::run(p, first + i * C.threads + team.rank());
    }
  }
};

}  // namespace cermet::rope
