// linear, dual_linear and grouped_linear over weights as they lie in memory: dot products of rows. For weights that change between runs;
// known weights are packed and take the kernels of gemm_packed.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/plain.cpp"
#include <hwy/foreach_target.h>

#include "base/checked.hpp"
#include "format/element.hpp"
#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/vec-inl.hpp"
#include "kernel/kernel.hpp"
#include "kernel/roofline.hpp"
#include "op/activation.hpp"
#include "op/products.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

/// sums[i] = sum over k of x[i * length + k] * w[k] for `rows` <= 4 rows; the weight is widened once for all of them.
template <class W>
void dot_rows(const float* x, int rows, const W* w, std::size_t length, float* sums) {
  const float* const second = x + (rows > 1 ? length : 0);
  const float* const third = x + (rows > 2 ? 2 * length : 0);
  const float* const fourth = x + (rows > 3 ? 3 * length : 0);
  auto a = hn::Zero(FloatTag()), b = a, c = a, d = a;
  for_vectors(length, [&](std::size_t k, std::size_t n) HWY_ATTR {
    const auto v = load_n(w + k, n);
    a = hn::MulAdd(load_n(x + k, n), v, a);
    b = hn::MulAdd(load_n(second + k, n), v, b);
    c = hn::MulAdd(load_n(third + k, n), v, c);
    d = hn::MulAdd(load_n(fourth + k, n), v, d);
  });
  sums[0] = sum_lanes(a), sums[1] = sum_lanes(b), sums[2] = sum_lanes(c), sums[3] = sum_lanes(d);
}

/// Rows of x as dense float32 rows.
void widen_rows(const TensorView& x, float* wide, ThreadPool& pool) {
  const Rows rows(x);
  const auto length = static_cast<std::size_t>(rows.length());
  if (length == 0) return;
  by_real_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    pool.parallel_for(rows.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        float* const to = wide + r * rows.length();
        const T* const from = reinterpret_cast<const T*>(rows.row(r));
        for_vectors(length, [&](std::size_t k, std::size_t n) HWY_ATTR { store_n(load_n(from + k, n), to + k, n); });
      }
    });
  });
}

float bias_at(const TensorView& bias, std::int64_t n) { return bias.present ? static_cast<float>(format::load_element(bias.data, bias.dtype, n)) : 0.0f; }

/// Rows [first, last) of y = x * w^T + bias; w is [columns, K].
void multiply_rows(const float* wide, std::int64_t first, std::int64_t last, const TensorView& w, const TensorView& bias, const TensorView& y,
                   ThreadPool& pool) {
  const Rows weights(w), results(y);
  const std::int64_t length = weights.length();
  by_real_dtype(w.dtype, [&](auto zero) {
    pool.parallel_for(weights.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = first; r < last; r += 4) {
        const int block = static_cast<int>(std::min<std::int64_t>(4, last - r));
        for (std::int64_t n = begin; n < end; ++n) {
          float sums[4];
          const auto* const row = reinterpret_cast<const decltype(zero)*>(weights.row(n));
          dot_rows(wide + r * length, block, row, static_cast<std::size_t>(length), sums);
          for (int i = 0; i < block; ++i) format::store_element(results.row(r + i), y.dtype, n, sums[i] + bias_at(bias, n));
        }
      }
    });
  });
}

TensorView optional_input(const LaunchArgs& args, std::size_t i) { return args.has(i) ? args.inputs[i] : TensorView(); }

}  // namespace

void linear_plain(const LaunchArgs& args) {
  float* const wide = reinterpret_cast<float*>(args.workspace);
  const std::int64_t rows = Rows(args.outputs[0]).count();
  if (rows == 0) return;
  widen_rows(args.inputs[0], wide, *args.pool);
  multiply_rows(wide, 0, rows, args.inputs[1], optional_input(args, 2), args.outputs[0], *args.pool);
}

void grouped_linear_plain(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &w = args.inputs[1], &offsets = args.inputs[2];
  check_group_offsets("grouped_linear", offsets, x.shape[0]);
  if (x.shape[0] == 0) return;
  float* const wide = reinterpret_cast<float*>(args.workspace);
  widen_rows(x, wide, *args.pool);
  TensorView bias = optional_input(args, 3);
  for (std::int64_t e = 0; e < w.shape[0]; ++e) {
    const std::int64_t first = load_index(offsets, e), last = load_index(offsets, e + 1);
    if (first == last) continue;
    if (bias.present) bias.data = Rows(args.inputs[3]).row(e);
    TensorView matrix = w;
    matrix.data = w.as<std::byte>() + e * w.strides[0] * static_cast<std::int64_t>(size_of(w.dtype));
    matrix.shape = {w.shape[1], w.shape[2]};
    matrix.strides = {w.strides[1], w.strides[2]};
    multiply_rows(wide, first, last, matrix, bias, args.outputs[0], *args.pool);
  }
}

void dual_linear_plain(const LaunchArgs& args, Activation activation) {
  const TensorView &w = args.inputs[1], &y = args.outputs[0], gate_bias = optional_input(args, 3), up_bias = optional_input(args, 4);
  const Rows gates(w), ups(args.inputs[2]), results(y);
  const std::int64_t rows = results.count(), length = gates.length();
  if (rows == 0) return;
  float* const wide = reinterpret_cast<float*>(args.workspace);
  widen_rows(args.inputs[0], wide, *args.pool);
  by_real_dtype(w.dtype, [&](auto zero) {
    using W = decltype(zero);
    args.pool->parallel_for(gates.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = 0; r < rows; r += 4) {
        const int block = static_cast<int>(std::min<std::int64_t>(4, rows - r));
        for (std::int64_t n = begin; n < end; ++n) {
          float gate[4], up[4];
          dot_rows(wide + r * length, block, reinterpret_cast<const W*>(gates.row(n)), static_cast<std::size_t>(length), gate);
          dot_rows(wide + r * length, block, reinterpret_cast<const W*>(ups.row(n)), static_cast<std::size_t>(length), up);
          for (int i = 0; i < block; ++i)
            format::store_element(results.row(r + i), y.dtype, n, activate(activation, gate[i] + bias_at(gate_bias, n)) * (up[i] + bias_at(up_bias, n)));
        }
      }
    });
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {
namespace {

HWY_EXPORT(linear_plain);
HWY_EXPORT(dual_linear_plain);
HWY_EXPORT(grouped_linear_plain);

constexpr const char* const summary = "dot products over the weight as it lies in memory; for weights that are not known beforehand";

std::int64_t workspace(const Problem& p, int) { return max_rows(p, 0, 0) * static_cast<std::int64_t>(sizeof(float)); }

/// Assumed: dot products of rows with four rows at a time reach a quarter of the peak.
double cost(const Region& region, const DeviceLimits& limits) { return roofline_seconds(region, limits.f32_operations_per_second / 4, limits); }

}  // namespace

extern const Kernel gemm_linear_plain{
    .name = "gemm.linear.plain",
    .op = OpKind::linear,
    .summary = summary,
    .bind = [](const Problem&) -> Launcher {
      return [](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(linear_plain)
        (args);
      };
    },
    .workspace = workspace,
    .cost = cost,
};

extern const Kernel gemm_dual_linear_plain{
    .name = "gemm.dual_linear.plain",
    .op = OpKind::dual_linear,
    .summary = summary,
    .bind = [](const Problem& p) -> Launcher {
      return [activation = activation_from_name(p.attributes.text("activation"))](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(dual_linear_plain)(args, activation);
      };
    },
    .workspace = workspace,
    .cost = cost,
};

extern const Kernel gemm_grouped_linear_plain{
    .name = "gemm.grouped_linear.plain",
    .op = OpKind::grouped_linear,
    .summary = summary,
    .declines = [](const Problem& p) -> Decline {
      if (dtypes::real.contains(p.input(0).dtype)) return std::nullopt;
      return fmt::format("x is {}; only real types are taken as they lie in memory", name_of(p.input(0).dtype));
    },
    .bind = [](const Problem&) -> Launcher {
      return [](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(grouped_linear_plain)
        (args);
      };
    },
    .workspace = workspace,
    .cost = cost,
};

}  // namespace cermet::cpu
#endif
