// What follows the product that makes queries, keys and values: pairs of their columns are rotated together, and go where rope_and_cache puts them. Columns are
// counted in pairs: of a head of queries or keys those that are rotated together, then the rest of it; of values any two.
#pragma once

#include "kernel/cuda/device/attention/cache_slots.cuh"
#include "kernel/cuda/device/attention/rotate_pair.cuh"
#include "kernel/cuda/device/gemv/finish.cuh"
#include "kernel/cuda/device/gemv/row_sums.cuh"

namespace cermet::gemv {

/// Which columns of the product are pairs.
template <Rotation R>
struct PairOrder {
  static constexpr int in_head = R.head_size / 2, in_value = R.value_size / 2, first_value = (R.q_heads + R.kv_heads) * in_head;

  /// Where a pair is: in which head of queries, keys or values (each counted for itself), and at which pair of it.
  struct Place {
    int head, pair;
    bool is_q, is_v;
    /// The element of the head that is the pair's first or second.
    __device__ __forceinline__ int element(int second) const {
      if (is_v) return pair + second * in_value;
      if constexpr (!R.neox) return 2 * pair + second;
      else return pair < R.half ? pair + second * R.half : R.half + pair + second * (in_head - R.half);
    }
    __device__ __forceinline__ bool is_rotated() const { return !is_v && (R.half == in_head || pair < R.half); }
  };

  static __device__ __forceinline__ Place place(int pair) {
    if (pair >= first_value) return {(pair - first_value) / in_value, (pair - first_value) % in_value, false, true};
    const int head = pair / in_head;
    const bool is_q = head < R.q_heads;
    return {is_q ? head : head - R.q_heads, pair % in_head, is_q, false};
  }
  /// The column; of firsts and of seconds alike, it grows with the pair.
  static __device__ __forceinline__ int column(const Place& at, int second) {
    const int head = at.is_v ? 0 : (at.is_q ? at.head : at.head + R.q_heads) * R.head_size;
    const int value = at.is_v ? 2 * first_value + at.head * R.value_size : 0;
    return head + value + at.element(second);
  }
  static __device__ __forceinline__ int column(int pair, int second) { return column(place(pair), second); }
};

/// Stores pairs of finished sums. E: the epilogue of the product itself.
template <Config C, class E>
struct PairEnd {
  static constexpr Rotation R = C.rotation;
  using Order = PairOrder<R>;
  using X = Element<E::out>;
  using Table = Element<R.table>;

  /// Of a row: where its token is, and where its key and value go; negative where that is outside of the tables or of the cache.
  struct Token {
    int64_t position = -1, slot = -1;
  };
  /// What is read for a pair before its sums are there.
  struct Factors {
    epilogue::ValuesOf<E> first, second;
    float cos, sin;
    float columns[C.compact ? 2 : 1];  ///< of the sums of compact rows
  };

  static __device__ __forceinline__ Token token(const RotatedParams& p, int row) {
    const int64_t position = static_cast<const Element<R.position>*>(p.positions)[row], slot = static_cast<const Element<R.slot>*>(p.slots)[row];
    return {position < p.table_rows ? position : -1, slot < p.pages * R.page ? slot : -1};
  }
  static __device__ __forceinline__ void load_row(const RotatedParams& p, int row, Factors& factors) {
    epilogue::load_row<E>(p.extra, row, 0, factors.first);
    epilogue::load_row<E>(p.extra, row, 0, factors.second);
  }
  static __device__ __forceinline__ void load_place(const RotatedParams& p, int row, int pair, const Token& token, Factors& factors) {
    const typename Order::Place at = Order::place(pair);
    epilogue::load_place<E>(p.extra, row, Order::column(at, 0), 0, factors.first);
    epilogue::load_place<E>(p.extra, row, Order::column(at, 1), 0, factors.second);
    if constexpr (C.compact)
#pragma unroll
      for (int i = 0; i < 2; ++i) factors.columns[i] = p.w_factors[Order::column(at, i)];
    factors.cos = factors.sin = quiet_nan();
    if (!at.is_rotated() || token.position < 0) return;
    factors.cos = to_float(static_cast<const Table*>(p.cos)[token.position * p.cos_stride + at.pair]);
    factors.sin = to_float(static_cast<const Table*>(p.sin)[token.position * p.sin_stride + at.pair]);
  }

  template <int I, class Sum>
  static __device__ __forceinline__ Sum scaled(const Sum (&sum)[2], const Factors& factors) {
    if constexpr (C.compact) return sum[I] * factors.columns[I];
    else return sum[I];
  }
  /// The result of the product as rope_and_cache reads it.
  template <class Sum>
  static __device__ __forceinline__ float value(Sum sum, [[maybe_unused]] float row_scale, const epilogue::ValuesOf<E>& x) {
    if constexpr (C.prologue.quantize) return to_float(epilogue::rounded<X>(E::value(sum, row_scale, x)));
    else return to_float(epilogue::rounded<X>(E::value(sum, x)));
  }
  template <class Sum>
  static __device__ __forceinline__ void store(const RotatedParams& p, int row, int pair, const Sum (&sum)[2], float row_scale, const Token& token,
                                               const Factors& factors) {
    const typename Order::Place at = Order::place(pair);
    float a = value(scaled<0>(sum, factors), row_scale, factors.first), b = value(scaled<1>(sum, factors), row_scale, factors.second);
    if (at.is_rotated()) rope_and_cache::rotate_pair(a, b, factors.cos, factors.sin);
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

/// Finishes rows of stages that hold pairs; see ColumnFinish.
template <Config C, class E, class Team>
struct PairFinish : RowSums<C, E> {
  using Base = RowSums<C, E>;
  using Base::S;
  using typename Base::Pass;
  using typename Base::S32;
  using typename Base::Segment;
  using End = PairEnd<C, E>;
  static constexpr PairStages stages{S.stage_rows};
  static constexpr int lanes = S.along, batch_pairs = batch / 2;
  static_assert(!C.blocked && !C.dual && !C.grouped && Base::sums == 1);

  typename End::Token token;
  typename End::Factors factors;

  static __device__ __forceinline__ const RotatedParams& params(const gemv::Params& p) { return static_cast<const RotatedParams&>(p); }
  static __device__ __forceinline__ int rows_of(const Segment& s) { return stages.rows_of(s.end - s.first); }
  static __device__ __forceinline__ int column_of(const Segment& s, int row) {
    return PairOrder<C.rotation>::column(min_of(s.first + stages.pair_of(row), s.end - 1), stages.second_of(row));
  }
  static __device__ __forceinline__ bool is_mine(const Segment& s, int pair) {
    return static_cast<int>(Team::rank()) % lanes == 0 && static_cast<int>(Team::rank()) < batch_pairs * lanes && pair < s.end;
  }

  __device__ __forceinline__ PairFinish(const gemv::Params& p, const Segment& s) {
    if (is_mine(s, s.first)) token = End::token(params(p), s.row);
  }
  __device__ __forceinline__ void load(const gemv::Params& p, const Segment& s) {
    const int pair = s.first + static_cast<int>(Team::rank()) / lanes;
    if (!is_mine(s, pair)) return;
    End::load_row(params(p), s.row, factors);
    End::load_place(params(p), s.row, pair, token, factors);
  }
  __device__ __forceinline__ void finish(const Pass& pass, int row, const S32* partial) {
    Team::sync_part(0, 32 * S.warps);
    const int thread = static_cast<int>(Team::rank()), of_batch = thread / lanes, q = thread % lanes;
    if (thread >= max_of(32, batch_pairs * lanes)) return;  // whole warps add up
    const S32* const own = partial + stages.row_of(min_of(of_batch, batch_pairs - 1)) * S.slots + q;
    S32 sum[2]{own[0], own[stages.pairs() * S.slots]};
#pragma unroll
    for (int width = lanes / 2; width > 0; width /= 2)
#pragma unroll
      for (int i = 0; i < 2; ++i) sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], width);
    const int pair = pass.s.first + row / 2 + of_batch;
    if (!is_mine(pass.s, pair)) return;
    End::store(params(pass.p), pass.s.row, pair, sum, pass.row_scale, token, factors);
    if (pair + batch_pairs < pass.s.end) End::load_place(params(pass.p), pass.s.row, pair + batch_pairs, token, factors);
  }
};

template <Config C, class E, class Team, bool Rotates = C.rotation.given>
struct FinishOf {
  using type = ColumnFinish<C, E, Team>;
};
template <Config C, class E, class Team>
struct FinishOf<C, E, Team, true> {
  using type = PairFinish<C, E, Team>;
};

}  // namespace cermet::gemv
