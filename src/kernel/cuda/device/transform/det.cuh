// det: a block for each matrix. Gaussian elimination with partial pivoting in float64, in the order of the definition:
// products and differences are rounded one by one, so that float64 results are its bits.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/team.cuh"
#include "kernel/cuda/device/transform/det.hpp"

namespace cermet::det {

struct Config {
  DType type;
};

/// One work item: a matrix.
template <Config C>
struct Task {
  using Params = det::Params;
  using T = Element<C.type>;

  static CERMET_DEVICE double widened(T x) {
    if constexpr (C.type == DType::f64) return x;
    else return to_float(x);
  }

  /// Row of the first of the largest elements of column k, from row k on; the same in all threads, which must not have
  /// written the column since a barrier.
  static CERMET_DEVICE int64_t pivot_row(const double* a, int64_t n, int64_t k) {
    int64_t pivot = k;
    double largest = fabs(a[k * n + k]);
    for (int64_t i = k + 1; i < n; ++i) {
      const double v = fabs(a[i * n + k]);
      if (v > largest) largest = v, pivot = i;
    }
    return pivot;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    int64_t offset[2];
    offsets_at(p.batch, item, offset);
    const int64_t n = p.size;
    double* a = p.matrices + static_cast<int64_t>(item) * n * n;
    const T* x = static_cast<const T*>(p.x) + offset[0];
    for (int64_t i = team.rank(); i < n * n; i += Team::size) a[i] = widened(x[i / n * p.stride + i % n]);
    team.sync();
    double product = 1;
    for (int64_t k = 0; k < n && product != 0; ++k) {
      const int64_t pivot = pivot_row(a, n, k);
      const double value = a[pivot * n + k];
      product = __dmul_rn(product, pivot == k ? value : -value);
      team.sync();
      for (int64_t j = k + team.rank(); pivot != k && j < n; j += Team::size) {
        const double above = a[k * n + j];
        a[k * n + j] = a[pivot * n + j];
        a[pivot * n + j] = above;
      }
      team.sync();
      // A warp takes a row; the column of factors stays as it is, because nothing reads it again.
      for (int64_t i = k + 1 + team.warp(); i < n; i += Team::warps) {
        const double factor = a[i * n + k] / value;
        for (int64_t j = k + 1 + lane_index(); j < n; j += 32)
          a[i * n + j] = __dsub_rn(a[i * n + j], __dmul_rn(factor, a[k * n + j]));
      }
      team.sync();
    }
    if (team.rank() != 0) return;
    T& y = static_cast<T*>(p.y)[offset[1]];
    if constexpr (C.type == DType::f64) y = product;
    else if constexpr (C.type == DType::f32) y = static_cast<float>(product);
    else y = from_float<T>(rounded_to_odd(product));
  }

  /// The float32 next to a number towards zero with its last bit set, or the number itself: rounding it once more gives
  /// what one rounding would.
  static CERMET_DEVICE float rounded_to_odd(double x) {
    const float towards_zero = __double2float_rz(x);
    if (static_cast<double>(towards_zero) == x || x != x) return towards_zero;
    return __uint_as_float(__float_as_uint(towards_zero) | 1u);
  }
};

}  // namespace cermet::det
