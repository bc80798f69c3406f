#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/mixture/unpermute.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/convert.hpp"
#include "kernel/cpu/index_list.hpp"
#include "kernel/cpu/vec-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"
#include "op/schema/reference.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// sum (+)= weight * x; a first term replaces what sum held.
template <class T>
void add_scaled_run(const std::byte* x, float weight, float* sum, std::int64_t length, bool first) {
  const T* from = reinterpret_cast<const T*>(x);
  const auto w = hn::Set(FloatTag(), weight);
  for_vectors(static_cast<std::size_t>(length), [&](std::size_t i, std::size_t n) HWY_ATTR {
    const auto v = load_n(from + i, n);
    store_n(first ? hn::Mul(w, v) : hn::MulAdd(w, v, load_n(sum + i, n)), sum + i, n);
  });
}

void add_scaled(const std::byte* x, DType dtype, float weight, float* sum, std::int64_t length, bool first) {
  by_real_dtype(dtype, [&](auto zero) { add_scaled_run<decltype(zero)>(x, weight, sum, length, first); });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(add_scaled);

namespace {

constexpr std::int64_t column_tile = 1024;  ///< columns summed together: 4 KB, which fits L1

void sum_experts(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const IndexList row_of(args.inputs[1]);
  const Rows from(x), weights(args.inputs[op::moe_unpermute::weights]), to(y),
      residual(args.has(op::moe_unpermute::residual) ? args.inputs[op::moe_unpermute::residual] : y);
  const std::int64_t k = args.inputs[1].shape[1], hidden = x.shape[1];
  for (std::int64_t pair = 0; pair < row_of.count(); ++pair)
    check_index("moe_unpermute", "1 (row_of)", row_of[pair], from.count());
  const RunConverter convert = real_converter(DType::f32, y.dtype);
  const auto x_size = byte_size(x.dtype), y_size = byte_size(y.dtype);
  args.pool->parallel_for(to.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    alignas(64) float sum[column_tile];
    for (std::int64_t t = begin; t < end; ++t)
      for (std::int64_t h = 0; h < hidden; h += column_tile) {
        const std::int64_t columns = std::min(column_tile, hidden - h);
        if (k == 0) std::fill_n(sum, columns, 0.0f);
        for (std::int64_t j = 0; j < k; ++j) HWY_DYNAMIC_DISPATCH(add_scaled)
        (from.row(row_of[t * k + j]) + h * x_size, x.dtype, reinterpret_cast<const float*>(weights.row(t))[j], sum,
         columns, j == 0);
        if (args.has(op::moe_unpermute::residual)) HWY_DYNAMIC_DISPATCH(add_scaled)
        (residual.row(t) + h * byte_size(args.inputs[op::moe_unpermute::residual].dtype),
         args.inputs[op::moe_unpermute::residual].dtype, 1.0f, sum, columns, false);
        convert(reinterpret_cast<const std::byte*>(sum), to.row(t) + h * y_size, columns);
      }
  });
}

}  // namespace

extern const Kernel moe_unpermute_rows{
    .name = "moe.unpermute",
    .op = OpKind::moe_unpermute,
    .summary = "sums each token's rows in float32; tokens spread over threads",
    .bind = [](const Problem&) -> Launcher { return sum_experts; },
};

}  // namespace cermet::cpu
#endif
