// linear by cuBLASLt: a candidate like any other.
#include "device/cuda/plugin.hpp"
#include "kernel/cuda/gemm/hopper.hpp"
#include "kernel/cuda/gemm/rows.hpp"
#include "kernel/roofline.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::gemm_cublaslt_file {
namespace {

/// What the library's documentation asks for on Hopper; other architectures need less.
constexpr std::int64_t workspace_bytes = 32 << 20;

Decline declines(const Problem& p) {
  const DType x = p.input(0).dtype, w = p.input(1).dtype, y = p.outputs[0].dtype;
  if (p.target->compute_capability < 80) return "needs compute capability 8.0";
  if (x != w || (x != DType::bf16 && x != DType::f16))
    return fmt::format("no product of {} with {}", name_of(x), name_of(w));
  if (y != x && y != DType::f32) return fmt::format("no result {} of {}", name_of(y), name_of(x));
  if (p.has(op::linear::bias) && p.input(op::linear::bias).dtype != y) return "bias is not of the result's type";
  const Dim n = p.outputs[0].dims.back(), k = p.input(0).dims.back();
  if (!n.is_constant() || !k.is_constant() || n.constant() % 8 != 0 || k.constant() % 8 != 0 ||
      n.constant() * k.constant() == 0)
    return "N and K are not known to be multiples of 8";
  if (!blas_problem().empty()) return blas_problem();
  return std::nullopt;
}

bool aligned(const TensorView& view, std::int64_t row) {
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && row * byte_size(view.dtype) % 16 == 0;
}

Launcher bind(const Problem& problem) {
  return [general = GeneralProduct(problem, GeneralProduct::Programs::small)](const LaunchArgs& args) {
    const TensorView &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
    const int leads = y.shape.rank() - 1;
    std::array<AxisSteps, 3> steps{steps_along(x, leads, 1), steps_along(y, leads, 1), AxisSteps{}};
    const RowAxes axes = merge_axes(y.shape, leads, steps, 2);
    const auto last = static_cast<std::size_t>(axes.rank - 1);
    const std::int64_t m = axes.m(), k = x.shape.back(), n = y.shape.back();
    const std::int64_t x_row = m > 1 ? steps[0][last] : k, y_row = m > 1 ? steps[1][last] : n,
                       w_row = n > 1 ? w.strides[0] : k;
    if (axes.rank > 1 || !aligned(x, x_row) || !aligned(w, w_row) || !aligned(y, y_row)) return general.launch(args);
    args.queue->multiply({.x = x.data,
                          .w = w.data,
                          .bias = args.has(op::linear::bias) ? args.inputs[op::linear::bias].data : nullptr,
                          .y = y.data,
                          .m = m,
                          .n = n,
                          .k = k,
                          .x_stride = x_row,
                          .w_stride = w_row,
                          .y_stride = y_row,
                          .operand = x.dtype,
                          .result = y.dtype,
                          .workspace = args.workspace,
                          .workspace_bytes = workspace_bytes});
  };
}

/// On Hopper what all 36 products of bf16 that were recorded on an H200 took (docs/notes/selection.md): 5 us, and 0.72
/// of the tensor cores' peak where memory does not take longer. Elsewhere nothing is known, so that it takes what our
/// own kernel does, which comes first.
double cost(const Problem& problem, const DeviceLimits& limits) {
  if (problem.target->compute_capability == 90)
    return 5e-6 + roofline_seconds(problem, 0.72 * limits.operations_per_second(problem.input(0).dtype), limits);
  return GeneralProduct(problem, GeneralProduct::Programs::tensor).seconds(limits);
}

}  // namespace

extern const Kernel cublaslt_linear;
const Kernel cublaslt_linear{
    .name = "cublaslt.linear",
    .op = OpKind::linear,
    .summary = "the vendor's library; launches whose rows are not aligned run on the CUDA cores",
    .declines = declines,
    .bind = bind,
    .workspace = [](const Problem&, int) { return workspace_bytes; },
    .programs =
        [](const Problem& problem) {
          return as_fallbacks(GeneralProduct(problem, GeneralProduct::Programs::small).programs());
        },
    .cost = cost,
    .model_error = {.recorded = 0.2},
};

}  // namespace cermet::cuda::gemm_cublaslt_file
