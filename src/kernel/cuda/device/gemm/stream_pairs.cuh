// The epilogue of stream.cuh with rope_and_cache after the product (tile/rotation.cuh). An item has a number of pairs
// of columns of one head: rows of the weight that make their first columns, then as many that make the second ones; of
// pairs of neighbours (and only there) all of them in the order of the weight.
#pragma once

#include "kernel/cuda/device/gemm/stream.cuh"
#include "kernel/cuda/device/tile/rotation.cuh"

namespace cermet::gemm {

/// A thread has single pairs. What they need is loaded a chunk of tokens ahead: for the first while the weights stream.
template <class E, StreamShape S, rotation::Config R, class Sum>
struct StreamPairs : StreamSums<S, Sum> {
  using Params = StreamRotatedParams;
  using Base = StreamSums<S, Sum>;
  using Base::rank, Base::threads;
  using End = rotation::PairEnd<R, E>;
  using Order = rotation::PairOrder<R>;
  static constexpr int across = S.rows / 2;                                           // pairs of an item
  static constexpr int each = static_cast<int>(div_up(S.chunk() * across, threads));  // of a thread, for a chunk
  static_assert(S.pairs && S.weights == 1 && Order::in_head % across == 0 && Order::in_value % across == 0);
  static_assert(!R.neox || R.half == Order::in_head || R.half % across == 0);

  const StreamRotatedParams& p;
  int first;  ///< pair
  typename End::Token tokens[each];
  typename End::Operands operands[each];

  CERMET_DEVICE StreamPairs(const StreamRotatedParams& p, char* sums, int rank, int item)
      : Base{reinterpret_cast<Sum*>(sums), rank}, p(p), first(item * across) {}

  /// Where an item's two parts begin among the rows of the weight.
  static CERMET_DEVICE int first_row(int item) { return Order::column(item * across, 0); }
  static CERMET_DEVICE int second_row(int item) {
    const typename Order::PairCoord at = Order::coord(item * across);
    return R.neox || at.is_v ? Order::column(at, 1) : Order::column(at, 0) + across;
  }
  /// Which row of an item makes a column of one of its pairs.
  CERMET_DEVICE int row_of(int pair, int second) const {
    return R.neox || first >= Order::first_value ? pair + second * across : 2 * pair + second;
  }

  CERMET_DEVICE int token_of(int i) const { return (rank + i * threads) / across; }
  CERMET_DEVICE int pair_of(int i) const { return (rank + i * threads) % across; }
  CERMET_DEVICE bool exists(int chunk, int i) const {
    return token_of(i) < S.chunk() && chunk * S.chunk() + token_of(i) < p.m;
  }

  /// Of tokens with one slot, the last one is kept.
  CERMET_DEVICE void load_tokens(int chunk) {
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (!exists(chunk, i)) continue;
      const int row = chunk * S.chunk() + token_of(i);
      tokens[i] = End::token(p, row);
      if (Order::coord(first).is_q) continue;
#pragma unroll 4
      for (int later = row + 1; later < p.m; ++later)
        if (static_cast<const Element<R.slot>*>(p.slots)[later] == tokens[i].slot) tokens[i].slot = -1;
    }
  }
  CERMET_DEVICE void load(int chunk) {
    load_tokens(chunk);
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (!exists(chunk, i)) continue;
      const int row = chunk * S.chunk() + token_of(i);
      End::load_row(p, row, operands[i]);
      End::load_place(p, row, first + pair_of(i), tokens[i], operands[i]);
    }
  }

  /// The results of a chunk whose sums all threads have put.
  CERMET_DEVICE void finish(int chunk) const {
#pragma unroll
    for (int i = 0; i < each; ++i) {
      if (!exists(chunk, i)) continue;
      const int token = token_of(i), pair = pair_of(i);
      const Sum sum[2]{this->template sum_of<1>(0, token, row_of(pair, 0))[0],
                       this->template sum_of<1>(0, token, row_of(pair, 1))[0]};
      End::store(p, chunk * S.chunk() + token, first + pair, sum, 1.0f, tokens[i], operands[i]);
    }
  }
};
/// The end of a product with rope_and_cache after it, see StoreRows.
template <rotation::Config R>
struct RotateAndCache {
  template <class E, StreamShape S, int N, class Sum>
  using Results = StreamPairs<E, S, R, Sum>;
};

}  // namespace cermet::gemm
