// moe_unpermute: y[t] = sum_j weights[t, j] * rows[row_of[t, j]] (+ residual[t]) in the order of j. A row that does not
// exist makes the token NaN.
#pragma once

#include "kernel/cuda/device/mixture/unpermute.hpp"
#include "kernel/cuda/device/movement/axes.cuh"

namespace cermet::unpermute {

template <Config C>
struct Task {
  using Params = unpermute::Params;
  using T = Element<C.rows>;
  using R = Element<C.residual>;
  using Out = Element<C.out>;
  static constexpr int width =
      min_of(min_of(per_16_bytes<T>, per_16_bytes<Out>), C.has_residual ? per_16_bytes<R> : 16);
  static constexpr int in_flight = min_of(C.k, 8);  // rows whose loads are in flight at once

  template <int Width>
  static CERMET_DEVICE void add(const Params& p, int64_t token, int64_t column) {
    const T* rows = static_cast<const T*>(p.rows) + column;
    float sum[Width] = {};
#pragma unroll 1
    for (int first = 0; first < C.k; first += in_flight) {
      Vector<T, Width> x[in_flight];
      float weight[in_flight];
#pragma unroll
      for (int j = 0; j < in_flight; ++j) {
        weight[j] = 0;
        if (first + j >= C.k) continue;
        const int64_t row = load_index(p.row_of, p.wide_ids, token * p.row_of_stride + first + j);
        const bool legal = row >= 0 && row < p.row_count;
        weight[j] = legal ? p.weights[token * p.weights_stride + first + j] : quiet_nan();
        x[j] = *reinterpret_cast<const Vector<T, Width>*>(rows + (legal ? row : 0) * p.rows_stride);
      }
#pragma unroll
      for (int j = 0; j < in_flight; ++j)
        if (first + j < C.k) {
#pragma unroll
          for (int i = 0; i < Width; ++i) sum[i] = fmaf(weight[j], to_float(x[j][i]), sum[i]);
        }
    }
    if constexpr (C.has_residual) {
      const auto r = *reinterpret_cast<const Vector<R, Width>*>(static_cast<const R*>(p.residual) +
                                                                token * p.residual_stride + column);
#pragma unroll
      for (int i = 0; i < Width; ++i) sum[i] += to_float(r[i]);
    }
    Vector<Out, Width> y;
#pragma unroll
    for (int i = 0; i < Width; ++i) y[i] = from_float<Out>(sum[i]);
    *reinterpret_cast<Vector<Out, Width>*>(static_cast<Out*>(p.y) + token * p.y_stride + column) = y;
  }

  /// One work item: some columns of a token.
  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t token = item / p.blocks, block = item - token * p.blocks;
    if (p.row_count == 0) return;
    if (p.vectors) {
      for (int64_t c = (block * C.threads + team.rank()) * width; c < p.columns; c += p.blocks * C.threads * width)
        add<width>(p, token, c);
    } else {
      for (int64_t c = block * C.threads + team.rank(); c < p.columns; c += p.blocks * C.threads) add<1>(p, token, c);
    }
  }
};

}  // namespace cermet::unpermute
