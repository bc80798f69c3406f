// What follows the product that makes queries, keys and values: pairs of their columns are rotated together, and go
// where rope_and_cache puts them. Columns are counted in pairs: of a head of queries or keys those that are rotated
// together, then the rest of it; of values any two.
#pragma once

#include "kernel/cuda/device/attention/rotate_pair.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"
#include "kernel/cuda/device/tile/rotation.hpp"

namespace cermet::rotation {

/// Which columns of the product are pairs.
template <Config R>
struct PairOrder {
  static constexpr int in_head = R.head_size / 2, in_value = R.value_size / 2,
                       first_value = (R.q_heads + R.kv_heads) * in_head;

  /// Where a pair is: in which head of queries, keys or values (each counted for itself), and at which pair of it.
  struct PairCoord {
    int head, pair;
    bool is_q, is_v;
    /// The element of the head that is the pair's first or second.
    CERMET_DEVICE int element(int second) const {
      if (is_v) return pair + second * in_value;
      if constexpr (!R.neox) return 2 * pair + second;
      else return pair < R.half ? pair + second * R.half : R.half + pair + second * (in_head - R.half);
    }
    CERMET_DEVICE bool is_rotated() const { return !is_v && (R.half == in_head || pair < R.half); }
  };

  static CERMET_DEVICE PairCoord coord(int pair) {
    if (pair >= first_value) return {(pair - first_value) / in_value, (pair - first_value) % in_value, false, true};
    const int head = pair / in_head;
    const bool is_q = head < R.q_heads;
    return {is_q ? head : head - R.q_heads, pair % in_head, is_q, false};
  }
  /// The column; of firsts and of seconds alike, it grows with the pair.
  static CERMET_DEVICE int column(const PairCoord& at, int second) {
    const int head = at.is_v ? 0 : (at.is_q ? at.head : at.head + R.q_heads) * R.head_size;
    const int value = at.is_v ? 2 * first_value + at.head * R.value_size : 0;
    return head + value + at.element(second);
  }
  static CERMET_DEVICE int column(int pair, int second) { return column(coord(pair), second); }
};

/// Stores pairs of finished sums. E: the epilogue of the product itself. RowScale: whether that takes a scale of the
/// row beside the sum. Factors: whether sums are multiplied by a factor of their column first, p.w_factors. Parameters
/// P have the members of Operands, and extra, y and y_stride of the product.
template <Config R, class E, bool RowScale = false, bool Factors = false>
struct PairEnd {
  using Order = PairOrder<R>;
  using X = Element<E::out>;
  using Table = Element<R.table>;

  /// Of a row: where its token is, and where its key and value go; negative where that is outside of the tables or of
  /// the cache.
  struct Token {
    int64_t position = -1, slot = -1;
  };
  /// What is read for a pair before its sums are there.
  struct Operands {
    epilogue::ValuesOf<E> first, second;
    float cos, sin;
    float columns[Factors ? 2 : 1];  ///< of the sums of compact rows
  };

  template <class P>
  static CERMET_DEVICE Token token(const P& p, int row) {
    const int64_t position = static_cast<const Element<R.position>*>(p.positions)[row],
                  slot = static_cast<const Element<R.slot>*>(p.slots)[row];
    return {position < p.table_rows ? position : -1, slot < p.pages * R.page ? slot : -1};
  }
  template <class P>
  static CERMET_DEVICE void load_row(const P& p, int row, Operands& operands) {
    epilogue::load_row<E>(p.extra, row, 0, operands.first);
    epilogue::load_row<E>(p.extra, row, 0, operands.second);
  }
  template <class P>
  static CERMET_DEVICE void load_place(const P& p, int row, int pair, const Token& token, Operands& operands) {
    const typename Order::PairCoord at = Order::coord(pair);
    epilogue::load_place<E>(p.extra, row, Order::column(at, 0), 0, operands.first);
    epilogue::load_place<E>(p.extra, row, Order::column(at, 1), 0, operands.second);
    if constexpr (Factors)
#pragma unroll
      for (int i = 0; i < 2; ++i) operands.columns[i] = p.w_factors[Order::column(at, i)];
    operands.cos = operands.sin = quiet_nan();
    if (!at.is_rotated() || token.position < 0) return;
    operands.cos = to_float(static_cast<const Table*>(p.cos)[token.position * p.cos_stride + at.pair]);
    operands.sin = to_float(static_cast<const Table*>(p.sin)[token.position * p.sin_stride + at.pair]);
  }

  template <int I, class Sum>
  static CERMET_DEVICE Sum scaled(const Sum (&sum)[2], const Operands& operands) {
    if constexpr (Factors) return sum[I] * operands.columns[I];
    else return sum[I];
  }
  /// The result of the product as rope_and_cache reads it.
  template <class Sum>
  static CERMET_DEVICE float value(Sum sum, [[maybe_unused]] float row_scale, const epilogue::ValuesOf<E>& x) {
    if constexpr (RowScale) return to_float(epilogue::rounded<X>(E::value(sum, row_scale, x)));
    else return to_float(epilogue::rounded<X>(E::value(sum, x)));
  }
  template <class P, class Sum>
  static CERMET_DEVICE void store(const P& p, int row, int pair, const Sum (&sum)[2], float row_scale,
                                  const Token& token, const Operands& operands) {
    const typename Order::PairCoord at = Order::coord(pair);
    float a = value(scaled<0>(sum, operands), row_scale, operands.first),
          b = value(scaled<1>(sum, operands), row_scale, operands.second);
    if (at.is_rotated()) rope_and_cache::rotate_pair(a, b, operands.cos, operands.sin);
    if (at.is_q) {
      auto* const q = static_cast<Element<R.q>*>(p.y) + row * p.y_stride + at.head * p.q_head_stride;
      q[at.element(0)] = from_float<Element<R.q>>(a);
      q[at.element(1)] = from_float<Element<R.q>>(b);
    } else if (token.slot >= 0) {
      using To = Element<R.cache>;
      To* const to = kv_cache::slot_place<To>(at.is_v ? p.v_cache : p.k_cache, token.slot, R.page, at.head).vector;
      to[at.element(0)] = from_float<To>(a);
      to[at.element(1)] = from_float<To>(b);
    }
  }
};

}  // namespace cermet::rotation
