// linear over weights as they lie in memory: the kernel for weights that change between runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/linear_plain.cpp"
#include <hwy/foreach_target.h>

#include "base/checked.hpp"
#include "format/element.hpp"
#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/vec-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/products.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// sums[i] = sum over k of x[i * x_step + k] * w[k] for `rows` <= 4 rows; the weight is widened once for all of them.
template <class W>
void dot_rows(const float* x, std::int64_t x_step, int rows, const W* w, std::size_t length, float* sums) {
  const std::int64_t second = rows > 1 ? x_step : 0, third = rows > 2 ? 2 * x_step : 0, fourth = rows > 3 ? 3 * x_step : 0;
  auto a = hn::Zero(FloatTag()), b = a, c = a, d = a;
  for_vectors(length, [&](std::size_t k, std::size_t n) HWY_ATTR {
    const auto v = load_n(w + k, n);
    a = hn::MulAdd(load_n(x + k, n), v, a);
    b = hn::MulAdd(load_n(x + second + k, n), v, b);
    c = hn::MulAdd(load_n(x + third + k, n), v, c);
    d = hn::MulAdd(load_n(x + fourth + k, n), v, d);
  });
  sums[0] = sum_lanes(a), sums[1] = sum_lanes(b), sums[2] = sum_lanes(c), sums[3] = sum_lanes(d);
}

/// Rows of x as dense float32 rows.
void widen_rows(const TensorView& x, float* wide, ThreadPool& pool) {
  const Rows rows(x);
  const auto length = static_cast<std::size_t>(rows.length());
  by_real_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    pool.parallel_for(rows.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        for_vectors(length, [&](std::size_t k, std::size_t n) HWY_ATTR {
          store_n(load_n(reinterpret_cast<const T*>(rows.row(r)) + k, n), wide + r * rows.length() + static_cast<std::int64_t>(k), n);
        });
    });
  });
}

void linear_plain(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
  const Rows weights(w), results(y);
  const std::int64_t rows = results.count(), length = weights.length();
  if (rows == 0) return;
  float* const wide = reinterpret_cast<float*>(args.workspace);
  if (length > 0) widen_rows(x, wide, *args.pool);
  by_real_dtype(w.dtype, [&](auto zero) {
    args.pool->parallel_for(weights.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = 0; r < rows; r += 4) {
        const int block = static_cast<int>(std::min<std::int64_t>(4, rows - r));
        for (std::int64_t n = begin; n < end; ++n) {
          float sums[4];
          dot_rows(wide + r * length, length, block, reinterpret_cast<const decltype(zero)*>(weights.row(n)), static_cast<std::size_t>(length), sums);
          const double bias = args.has(2) ? format::load_element(args.inputs[2].data, args.inputs[2].dtype, n) : 0;
          for (int i = 0; i < block; ++i) format::store_element(results.row(r + i), y.dtype, n, sums[i] + static_cast<float>(bias));
        }
      }
    });
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(linear_plain);

extern const Kernel gemm_linear_plain{
    .name = "gemm.linear.plain",
    .op = OpKind::linear,
    .summary = "dot products over the weight as it lies in memory; for weights that are not known beforehand",
    .bind = [](const Problem&) -> Launcher {
      return [](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(linear_plain)
        (args);
      };
    },
    .workspace = [](const Problem& p, int) { return max_rows(p, 0, 0) * static_cast<std::int64_t>(sizeof(float)); },
};

}  // namespace cermet::cpu
#endif
