// linear, dual_linear and grouped_linear over weights as they lie in memory: dot products of rows. For weights that
// change between runs; known weights are packed and take the kernels of gemm_packed.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/gemm/plain.cpp"
#include <hwy/foreach_target.h>

#include "base/checked.hpp"
#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/gemm/binding.hpp"
#include "kernel/cpu/vec-inl.hpp"
#include "kernel/roofline.hpp"
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

/// Rows of x, or of what comes before the product, which is made first, as dense float32 rows at the start of the
/// workspace.
const float* make_wide_rows(const LaunchArgs& args, const ProductBinding& binding, std::int64_t count,
                            std::int64_t length) {
  float* const wide = reinterpret_cast<float*>(args.workspace);
  if (!binding.prologue) {
    widen_rows(binding.operands(args, 0), wide, *args.pool);
    return wide;
  }
  const TensorView made = binding.prologue.rows(count, length, args.workspace + wide_bytes(count * length));
  if (binding.prologue.makes_all()) binding.prologue.make_all(args, made);
  else
    args.pool->parallel_for(
        count, 1, [&](std::int64_t first, std::int64_t last) { binding.prologue.run(args, first, last, made, 0); });
  widen_rows(made, wide, *args.pool);
  return wide;
}

constexpr std::int64_t tile_rows = 4, tile_columns = 32;

/// tile[r][c] = the product of rows [first, first + rows) with columns [begin, end) of the result; w is [columns, K].
void multiply_tile(const float* wide, std::int64_t first, std::int64_t rows, const TensorView& w, std::int64_t begin,
                   std::int64_t end, float* tile) {
  const Rows weights(w);
  const std::int64_t length = weights.length();
  by_real_dtype(w.dtype, [&](auto zero) {
    for (std::int64_t n = begin; n < end; ++n) {
      float sums[tile_rows];
      const auto* const row = reinterpret_cast<const decltype(zero)*>(weights.row(n));
      dot_rows(wide + first * length, static_cast<int>(rows), row, static_cast<std::size_t>(length), sums);
      for (std::int64_t r = 0; r < rows; ++r) tile[r * tile_columns + n - begin] = sums[r];
    }
  });
}

/// Rows [first, last) of the result from one weight, or two with products of their own.
void multiply_rows(const float* wide, std::int64_t first, std::int64_t last, std::span<const TensorView> weights,
                   const TileRun& epilogue, std::int64_t group, ThreadPool& pool) {
  pool.parallel_for(weights[0].shape[0], 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = first; r < last; r += tile_rows)
      for (std::int64_t n = begin; n < end; n += tile_columns) {
        const TileRange range{r, std::min(tile_rows, last - r), n, std::min(tile_columns, end - n), group};
        alignas(64) float tiles[2][tile_rows * tile_columns];
        TileOperand inputs[2];
        for (std::size_t i = 0; i < weights.size(); ++i) {
          multiply_tile(wide, r, range.rows, weights[i], n, n + range.columns, tiles[i]);
          inputs[i] = {tiles[i], tile_columns, 1};
        }
        epilogue(inputs, range);
      }
  });
}

/// Rows [first, last) that have no weight, whose sums are 0.
void finish_unweighted(std::int64_t first, std::int64_t last, std::int64_t columns, const TileRun& epilogue,
                       ThreadPool& pool) {
  if (first == last) return;
  pool.parallel_for(columns, 1, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) static constexpr float nothing[tile_rows * tile_columns]{};
    const TileOperand inputs[] = {{nothing, tile_columns, 1}, {nothing, tile_columns, 1}};
    for (std::int64_t r = first; r < last; r += tile_rows)
      for (std::int64_t n = begin; n < end; n += tile_columns)
        epilogue(inputs, {r, std::min(tile_rows, last - r), n, std::min(tile_columns, end - n), 0});
  });
}

/// Leaves the first half of a weight's rows in `w`, and returns the second.
TensorView second_half(TensorView& w) {
  return ProductBinding::split_weight(w, w.shape[0] / 2 * w.strides[0] * byte_size(w.dtype));
}

}  // namespace

/// linear, of one weight or two halves, and dual_linear with its two weights.
void linear_plain(const LaunchArgs& args, const ProductBinding& binding, std::size_t weights) {
  const std::int64_t rows = Rows(args.outputs[binding.result]).count();
  if (rows == 0) return;
  TensorView matrices[] = {binding.operands(args, 1), binding.operands(args, 2)};
  if (binding.gated) {
    matrices[1] = second_half(matrices[0]);
    weights = 2;
  }
  const float* const wide = make_wide_rows(args, binding, rows, matrices[0].shape.back());
  multiply_rows(wide, 0, rows, {matrices, weights}, TileRun(binding.epilogue, args), 0, *args.pool);
  binding.norm.run(args);
}

void grouped_linear_plain(const LaunchArgs& args, const ProductBinding& binding) {
  const TensorView w = binding.operands(args, 1), offsets = binding.operands(args, 2);
  const std::int64_t rows = args.outputs[binding.result].shape[0];
  check_group_offsets("grouped_linear", offsets, rows);
  if (rows == 0) return;
  const float* const wide = make_wide_rows(args, binding, rows, w.shape[2]);
  const TileRun epilogue(binding.epilogue, args);
  for (std::int64_t e = 0; e < w.shape[0]; ++e) {
    const std::int64_t first = load_index(offsets, e), last = load_index(offsets, e + 1);
    if (first == last) continue;
    TensorView matrices[2];
    matrices[0] = w;
    matrices[0].data = w.as<std::byte>() + e * w.strides[0] * byte_size(w.dtype);
    matrices[0].shape = {w.shape[1], w.shape[2]};
    matrices[0].strides = {w.strides[1], w.strides[2]};
    if (binding.gated) matrices[1] = second_half(matrices[0]);
    multiply_rows(wide, first, last, {matrices, binding.gated ? 2u : 1u}, epilogue, e, *args.pool);
  }
  finish_unweighted(load_index(offsets, w.shape[0]), rows, args.outputs[binding.result].shape[1], epilogue, *args.pool);
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {
namespace {

HWY_EXPORT(linear_plain);
HWY_EXPORT(grouped_linear_plain);

constexpr const char* const summary =
    "dot products over the weight as it lies in memory; for weights that are not known beforehand";

std::int64_t workspace(const Region& region, int) {
  return wide_bytes(max_rows(region.problem(), 0, 0)) + Prologue::workspace(region, max_rows(region.problem(), 0));
}

template <std::size_t weights>
Launcher bind_linear(const Region& region) {
  return [binding = ProductBinding(region)](const LaunchArgs& args) {
    HWY_DYNAMIC_DISPATCH(linear_plain)(args, binding, weights);
  };
}

/// Assumed: dot products of rows with four rows at a time reach a quarter of the peak.
double cost(const Region& region, const DeviceLimits& limits) {
  return roofline_seconds(region, limits.f32_operations_per_second / 4, limits) +
         ProductBinding::gate_seconds(region, limits);
}

}  // namespace

extern const Kernel gemm_linear_plain{
    .name = "gemm.linear.plain",
    .op = OpKind::linear,
    .summary = summary,
    .fuses = true,
    .declines = ProductBinding::declines_around,
    .bind = bind_linear<1>,
    .workspace = workspace,
    .cost = cost,
};

extern const Kernel gemm_dual_linear_plain{
    .name = "gemm.dual_linear.plain",
    .op = OpKind::dual_linear,
    .summary = summary,
    .fuses = true,
    .declines = ProductBinding::declines_around,
    .bind = bind_linear<2>,
    .workspace = workspace,
    .cost = cost,
};

extern const Kernel gemm_grouped_linear_plain{
    .name = "gemm.grouped_linear.plain",
    .op = OpKind::grouped_linear,
    .summary = summary,
    .fuses = true,
    .declines = [](const Region& region) -> Decline {
      const DType x = region.problem().input(0).dtype;
      if (!dtypes::real.contains(x))
        return fmt::format("x is {}; only real types are taken as they lie in memory", name_of(x));
      return ProductBinding::declines_around(region);
    },
    .bind = [](const Region& region) -> Launcher {
      return [binding = ProductBinding(region)](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(grouped_linear_plain)(args, binding);
      };
    },
    .workspace = workspace,
    .cost = cost,
    .cut = ProductBinding::gate_cut,
};

}  // namespace cermet::cpu
#endif
