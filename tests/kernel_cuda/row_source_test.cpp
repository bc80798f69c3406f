// What is generated for row kernels, whole, as NVRTC compiles it.
#include "jit/wrapper.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/cuda/task.hpp"
#include "tests/support/golden.hpp"

namespace cermet::cuda {
namespace {

/// The first program of the first kernel that takes the operator alone.
std::string source_of(OpKind op, std::vector<std::optional<TensorType>> inputs, const Attributes& attributes = {}) {
  const Region region(make_problem(definition(op), std::move(inputs), attributes));
  for (const Kernel* kernel : kernels_of(op))
    if (!kernel->declines(region)) return jit::wrapper_source(kernel->programs(region, {}).front());
  return "";
}

TEST(RowSource, RmsNorm) {
  expect_golden("kernel_cuda/golden/rms_norm.cu",
                source_of(OpKind::rms_norm, {TensorType{DType::bf16, {64, 4096}}, TensorType{DType::bf16, {4096}}}));
}

std::string quantized_norm(const Attributes& attributes) {
  return source_of(OpKind::rms_norm_quant, {TensorType{DType::bf16, {4, 512}}, TensorType{DType::bf16, {512}}},
                   attributes);
}

// Where one scale is enough, the norm's factor enters it, and both statistics take one reduction.
TEST(RowSource, NormWithOneScale) { expect_golden("kernel_cuda/golden/rms_norm_quant.cu", quantized_norm({})); }
TEST(RowSource, NormWithZeroPoint) {
  expect_golden("kernel_cuda/golden/rms_norm_quant_asymmetric.cu", quantized_norm({{"asymmetric", true}}));
}
TEST(RowSource, NormWithGroupScales) {
  expect_golden("kernel_cuda/golden/rms_norm_quant_group.cu", quantized_norm({{"granularity", "group"}}));
}

// Both halves of a gate are one operand.
TEST(RowSource, Gate) {
  for (const bool interleaved : {false, true})
    expect_golden(
        interleaved ? "kernel_cuda/golden/silu_and_mul_quant_interleaved.cu"
                    : "kernel_cuda/golden/silu_and_mul_quant.cu",
        source_of(OpKind::silu_and_mul_quant, {TensorType{DType::bf16, {4, 512}}}, {{"interleaved", interleaved}}));
}

}  // namespace
}  // namespace cermet::cuda
