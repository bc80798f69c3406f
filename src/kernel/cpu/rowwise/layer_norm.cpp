#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rowwise/layer_norm.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/kernels.hpp"
#include "kernel/cpu/rowwise/moments-inl.hpp"
#include "kernel/cpu/rowwise/row_grain.hpp"
#include "kernel/cpu/rowwise/row_kernel.hpp"
#include "op/operands.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// y = (x - mean) * scale * weight + bias with a weight and bias per element, either of which may be missing.
void layer_norm_row(RowIn x, RowIn weight, RowIn bias, RowOut y, std::size_t length, float eps) {
  const MeanAndScale row = statistics(x, length, eps);
  const auto mean = hn::Set(FloatTag(), row.mean), scale = hn::Set(FloatTag(), row.scale);
  TileBuffer x_buffer, weight_buffer, bias_buffer, y_buffer;
  for_tiles(length, [&](std::size_t first, std::size_t n) HWY_ATTR {
    const float *values = x.read(first, n, x_buffer), *w = weight ? weight.read(first, n, weight_buffer) : nullptr;
    const float* b = bias ? bias.read(first, n, bias_buffer) : nullptr;
    float* result = y.tile(first, y_buffer);
    for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      auto v = hn::Mul(hn::Sub(load_n(values + i, count), mean), scale);
      if (w) v = hn::Mul(v, load_n(w + i, count));
      if (b) v = hn::Add(v, load_n(b + i, count));
      store_n(v, result + i, count);
    });
    y.commit(first, n, y_buffer);
  });
}

void layer_norm(const LaunchArgs& args, float eps) {
  const auto vector = [&](std::size_t operand) {
    return args.has(operand) ? RowIn{args.inputs[operand].as<std::byte>(), args.inputs[operand].dtype} : RowIn{};
  };
  const RowIn weight = vector(1), bias = vector(2);
  const int trailing = args.has(1)                      ? args.inputs[1].shape.rank()
                       : args.has(op::layer_norm::bias) ? args.inputs[op::layer_norm::bias].shape.rank()
                                                        : 1;
  const Rows from(args.inputs[0], trailing), to(args.outputs[0], trailing);
  args.pool->parallel_for(
      from.count(), row_grain(from.count(), from.length()), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
          layer_norm_row({from.row(r), args.inputs[0].dtype}, weight, bias, {to.row(r), args.outputs[0].dtype},
                         static_cast<std::size_t>(from.length()), eps);
      });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(layer_norm);

extern const Kernel rowwise_layer_norm;
const Kernel rowwise_layer_norm = with_row_regions({
    .name = "rowwise.layer_norm",
    .op = OpKind::layer_norm,
    .summary = "a pass for the mean, one for the variance, one to scale; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [eps = static_cast<float>(p.attributes.number("eps"))](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(layer_norm)(args, eps);
      };
    },
});

}  // namespace cermet::cpu
#endif
