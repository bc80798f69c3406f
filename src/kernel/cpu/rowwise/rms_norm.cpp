#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rowwise/rms_norm.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/rowwise/inverse_rms-inl.hpp"
#include "kernel/cpu/rowwise/row_grain.hpp"
#include "kernel/cpu/rowwise/row_kernel.hpp"
#include "kernel/cpu/vec-inl.hpp"
#include "kernel/kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// One row: y[i] = x[i] * scale * (weight[i] + offset), 0 <= i < length. `weight` may be null.
template <class X, class W, class Y>
void rms_norm_row(const X* x, const W* weight, Y* y, std::size_t length, float eps, float offset) {
  const auto scale = hn::Set(FloatTag(), inverse_rms(x, length, eps));
  for_vectors(length, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto v = hn::Mul(load_n(x + i, n), scale);
    if (weight) v = hn::Mul(v, hn::Add(load_n(weight + i, n), hn::Set(FloatTag(), offset)));
    store_n(v, y + i, n);
  });
}

void rms_norm(const LaunchArgs& args, float eps, float offset) {
  const TensorView& x = args.inputs[0];
  const int trailing = args.has(1) ? args.inputs[1].shape.rank() : 1;
  const Rows from(x, trailing), to(args.outputs[0], trailing);
  const DType weight_type = args.has(1) ? args.inputs[1].dtype : DType::f32;
  const void* weight = args.has(1) ? args.inputs[1].data : nullptr;
  by_real_dtype(x.dtype, [&](auto x_zero) {
    by_real_dtype(weight_type, [&](auto w_zero) {
      by_real_dtype(args.outputs[0].dtype, [&](auto y_zero) {
        args.pool->parallel_for(from.count(), row_grain(from.count(), from.length()),
                                [&](std::int64_t begin, std::int64_t end) {
                                  for (std::int64_t r = begin; r < end; ++r)
                                    rms_norm_row(reinterpret_cast<const decltype(x_zero)*>(from.row(r)),
                                                 static_cast<const decltype(w_zero)*>(weight),
                                                 reinterpret_cast<decltype(y_zero)*>(to.row(r)),
                                                 static_cast<std::size_t>(from.length()), eps, offset);
                                });
      });
    });
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(rms_norm);

extern const Kernel rowwise_rms_norm;
const Kernel rowwise_rms_norm = with_row_regions({
    .name = "rowwise.rms_norm",
    .op = OpKind::rms_norm,
    .summary = "one pass for the sum of squares, one to scale; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [eps = static_cast<float>(p.attributes.number("eps")),
              offset = static_cast<float>(p.attributes.number("weight_offset"))](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(rms_norm)(args, eps, offset);
      };
    },
});

}  // namespace cermet::cpu
#endif
