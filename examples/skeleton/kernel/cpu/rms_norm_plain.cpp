// Skeleton of a CPU kernel: rms_norm of float32 rows without a weight. Copy to src/kernel/cpu/FAMILY/NAME.cpp (and
// change the two lines that name the file), add the row X(VARIABLE) to src/kernel/cpu/kernels.inc: earlier rows of an
// operator are tried first. The conformance test finds it there.
//
// Everything between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE is compiled once for each instruction set; keep it
// free of anything that a linker could merge across them (function templates of the standard library, inline functions
// of other headers that compute).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rms_norm_plain.cpp"
#include <hwy/foreach_target.h>

#include <cmath>

#include "kernel/cpu/vec-inl.hpp"
#include "kernel/kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// y[i] = x[i] / sqrt(mean(x^2) + eps), 0 <= i < length. for_vectors hands out whole vectors, then the tail.
void rms_norm_plain_row(const float* x, float* y, std::size_t length, float eps) {
  auto squares = hn::Zero(FloatTag());
  for_vectors(length, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const auto v = load_n(x + i, n);
    squares = hn::MulAdd(v, v, squares);
  });
  const auto scale = hn::Set(FloatTag(), 1.0f / std::sqrt(sum_lanes(squares) / static_cast<float>(length) + eps));
  for_vectors(length,
              [&](std::size_t i, std::size_t n) HWY_ATTR { store_n(hn::Mul(load_n(x + i, n), scale), y + i, n); });
}

/// A launch: no allocation, no strings. Rows walks strided leading dimensions; the pool gives each thread a contiguous
/// piece.
void rms_norm_plain(const LaunchArgs& args, float eps) {
  const Rows from(args.inputs[0]), to(args.outputs[0]);
  args.pool->parallel_for(from.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      rms_norm_plain_row(reinterpret_cast<const float*>(from.row(r)), reinterpret_cast<float*>(to.row(r)),
                         static_cast<std::size_t>(from.length()), eps);
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {
namespace {

/// Why the kernel declines a problem, as shown by `cermet explain op rms_norm`.
Decline declines(const Problem& p) {
  if (p.has(1)) return "a weight is given; this kernel takes rows without one";
  if (p.input(0).dtype != DType::f32 || p.outputs[0].dtype != DType::f32) return "x or y is not f32";
  return {};
}

}  // namespace

HWY_EXPORT(rms_norm_plain);

// Besides these fields a kernel may request scratch memory (`workspace`) and for a weight in a packed layout
// (`weight_layout`).
extern const Kernel rowwise_rms_norm_plain{
    .name = "rowwise.rms_norm.plain",
    .op = OpKind::rms_norm,
    .summary = "float32 rows without a weight; one pass for the sum of squares, one to scale",
    .declines = declines,
    // Attributes are read here, once; the launcher holds their values.
    .bind = [](const Problem& p) -> Launcher {
      return [eps = static_cast<float>(p.attributes.number("eps"))](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(rms_norm_plain)(args, eps);
      };
    },
};

}  // namespace cermet::cpu
#endif
