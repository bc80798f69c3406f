#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.hpp"
#include "format/element.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {
namespace {

/// Gaussian elimination with partial pivoting of a dense [n, n] matrix, which is lost.
double determinant(double* a, std::int64_t n) {
  double product = 1;
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    const double value = a[pivot * n + k];
    product *= pivot == k ? value : -value;
    if (product == 0) return 0;
    if (pivot != k) std::swap_ranges(a + k * n + k, a + (k + 1) * n, a + pivot * n + k);
    const double* const row = a + k * n;
    for (std::int64_t i = k + 1; i < n; ++i) {
      double* const to = a + i * n;
      const double factor = to[k] / value;
      for (std::int64_t j = k + 1; j < n; ++j) to[j] -= factor * row[j];
    }
  }
  return product;
}

std::int64_t matrix_bytes(std::int64_t n) { return round_up(n * n * static_cast<std::int64_t>(sizeof(double)), 64); }

void determinants(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const std::int64_t n = x.shape.back();
  const Rows rows(x), results(y, 0);
  args.pool->run([&](int thread) {
    double* const matrix = reinterpret_cast<double*>(args.workspace + thread * matrix_bytes(n));
    const std::int64_t threads = args.pool->size(), begin = y.elements() * thread / threads,
                       end = y.elements() * (thread + 1) / threads;
    for (std::int64_t m = begin; m < end; ++m) {
      for (std::int64_t i = 0; i < n * n; ++i)
        matrix[i] = format::load_element(rows.row(m * n + i / n), x.dtype, i % n);
      format::store_element(results.row(m), y.dtype, 0, determinant(matrix, n));
    }
  });
}

}  // namespace

extern const Kernel transform_det{
    .name = "transform.det",
    .op = OpKind::det,
    .summary = "Gaussian elimination in float64; matrices spread over threads",
    .bind = [](const Problem&) -> Launcher { return determinants; },
    .workspace = [](const Problem& p, int threads) { return threads * matrix_bytes(p.size(0, -1)); },
};

}  // namespace cermet::cpu
