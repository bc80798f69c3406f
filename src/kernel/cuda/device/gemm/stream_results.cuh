// What becomes of the sums of stream.cuh: they go through shared memory, so that the epilogue meets neighbouring
// columns of a row of the result, or both columns of a pair, and sums of several sets of warpgroups meet each other.
#pragma once

#include "kernel/cuda/device/gemm/stream.hpp"
#include "kernel/cuda/device/team.cuh"
#include "kernel/cuda/device/tile/epilogue.cuh"

namespace cermet::gemm {

/// Sums in shared memory, of a chunk of tokens: [sets][weights][chunk][pitch].
template <StreamShape S, class Sum>
struct StreamSums {
  static constexpr int threads = 128 * S.consumers(), area = S.chunk() * S.pitch();  // of a weight and a set
  Sum* sums;
  int rank;

  /// A thread's sums of the tokens of chunk I, as wgmma leaves them: columns of its fragments are tokens, rows are
  /// columns of the result.
  template <int I, int Own>
  CERMET_DEVICE void put(const Sum (&d)[S.weights][Own], int set, int group) {
    const int lane = static_cast<int>(lane_index()), row = group * 64 + rank / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int side = 0; side < S.weights; ++side)
#pragma unroll
      for (int j = 0; j < S.chunk() / 8; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
          for (int i = 0; i < 2; ++i)
            sums[(set * S.weights + side) * area + (8 * j + 2 * (lane % 4) + i) * S.pitch() + row + 8 * h] =
                d[side][4 * (I * S.chunk() / 8 + j) + 2 * h + i];
  }

  /// Of `Width` neighbouring columns of a token, over all sets.
  template <int Width>
  CERMET_DEVICE Vector<Sum, Width> sum_of(int side, int token, int column) const {
    const auto at = [&](int set) {
      return *reinterpret_cast<const Vector<Sum, Width>*>(sums + (set * S.weights + side) * area + token * S.pitch() +
                                                          column);
    };
    Vector<Sum, Width> sum = at(0);
#pragma unroll
    for (int set = 1; set < S.sets; ++set) {
      const Vector<Sum, Width> more = at(set);
#pragma unroll
      for (int c = 0; c < Width; ++c) sum[c] += more[c];
    }
    return sum;
  }
};

/// A thread has groups of four columns. Their operands are loaded a chunk of tokens ahead: those of the first while the
/// weights stream.
template <class E, StreamShape S, int N, class Sum>
struct StreamResults : StreamSums<S, Sum> {
  using Base = StreamSums<S, Sum>;
  using Base::rank, Base::threads;
  static constexpr int width = 4, across = S.rows / width;
  static constexpr int quads = static_cast<int>(div_up(S.chunk() * across, threads));  // of a thread, for a chunk
  static_assert(N % width == 0);

  const StreamParams& p;
  int n;
  epilogue::ValuesOf<E> values[quads][width];

  CERMET_DEVICE StreamResults(const StreamParams& p, char* sums, int rank, int item)
      : Base{reinterpret_cast<Sum*>(sums), rank}, p(p), n(item * S.rows) {}
  /// Where an item's rows of the weight begin.
  static CERMET_DEVICE int first_row(int item) { return item * S.rows; }

  /// A group's token of a chunk, and its first column among the item's.
  CERMET_DEVICE int token_of(int i) const { return (rank + i * threads) / across; }
  CERMET_DEVICE int column_of(int i) const { return (rank + i * threads) % across * width; }
  CERMET_DEVICE bool exists(int chunk, int i) const {
    return token_of(i) < S.chunk() && chunk * S.chunk() + token_of(i) < p.m && n + column_of(i) < N;
  }

  CERMET_DEVICE void load(int chunk) {
    if constexpr (E::extras > 0) {
#pragma unroll
      for (int i = 0; i < quads; ++i) {
        if (!exists(chunk, i)) continue;
        const int row = chunk * S.chunk() + token_of(i);
        epilogue::load_row<E>(p.extra, row, 0, values[i][0]);
#pragma unroll
        for (int c = 0; c < width; ++c) {
          if (c > 0) values[i][c] = values[i][0];
        }
#pragma unroll
        for (int c = 0; c < width; ++c) epilogue::load_place<E>(p.extra, row, n + column_of(i) + c, 0, values[i][c]);
      }
    }
  }

  /// The results of a chunk whose sums all threads have put.
  CERMET_DEVICE void finish(int chunk) const {
#pragma unroll
    for (int i = 0; i < quads; ++i) {
      if (!exists(chunk, i)) continue;
      const int token = token_of(i);
      const Vector<Sum, width> sum = this->template sum_of<width>(0, token, column_of(i));
      const Vector<Sum, width> up =
          S.weights == 2 ? this->template sum_of<width>(S.weights - 1, token, column_of(i)) : sum;
      const int row = chunk * S.chunk() + token, column = n + column_of(i);
      store<E>(p.y, row * p.y_stride + column, sum, up, values[i]);
      if constexpr (epilogue::gives_two<E>)
        store<typename E::Also>(p.also, row * p.also_stride + column, sum, up, values[i]);
    }
  }
  template <class Result>
  static CERMET_DEVICE void store(void* to, int64_t at, const Vector<Sum, width>& sum,
                                  [[maybe_unused]] const Vector<Sum, width>& up,
                                  const epilogue::ValuesOf<E> (&x)[width]) {
    using T = Element<Result::out>;
    Vector<T, width> out;
#pragma unroll
    for (int c = 0; c < width; ++c) {
      if constexpr (S.weights == 2) out[c] = epilogue::rounded<T>(Result::value(sum[c], up[c], x[c]));
      else out[c] = epilogue::rounded<T>(Result::value(sum[c], x[c]));
    }
    *reinterpret_cast<Vector<T, width>*>(static_cast<T*>(to) + at) = out;
  }
};

}  // namespace cermet::gemm
