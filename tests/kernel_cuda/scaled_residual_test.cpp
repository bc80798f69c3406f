// An epilogue as an example: y = product * scalar + residual after every product of every family is this file alone;
// kernels read it from the region.
#include "tests/kernel_cuda/epilogue_case.hpp"

namespace cermet {
namespace {

std::vector<EpilogueCase> residual_cases() {
  constexpr DType bf16 = DType::bf16, f16 = DType::f16, f32 = DType::f32;
  std::vector<EpilogueCase> list;
  const auto sum = [](TensorType other) { return After{{OpKind::add, std::move(other), true}, normal()}; };
  const auto scaled = [](DType t) { return After{{OpKind::mul, TensorType{t, {}}}, constant(0.375)}; };
  for (const DType t : {bf16, f16}) {
    const TensorType y{t, {150, 136}};
    list.push_back({OpKind::linear,
                    {fmt::format("{}_scaled_residual", name_of(t)), {real(t, {150, 272}), weight(t, {136, 272})}},
                    {scaled(t), sum(y)},
                    {"gemm.linear.hopper", "gemm.linear.tensor", "gemm.linear.general"}});
  }
  list.push_back(
      {OpKind::linear,
       {"split_scaled_residual", {real(f32, {70, 136}), weight(bf16, {72, 136}), real(f32, {72})}, to("f32")},
       {scaled(f32), sum({f32, {70, 72}})},
       {"gemm.linear.dots", "gemm.linear.hopper", "gemm.linear.general"}});
  list.push_back({OpKind::linear,
                  {"one_row_scaled_residual", {real(f32, {1, 520}), weight(bf16, {45, 520})}, to("bf16")},
                  {scaled(bf16), sum({bf16, {1, 45}})},
                  {"gemv.linear", "gemm.linear.general"}});
  list.push_back(
      {OpKind::matmul,
       {"batches_scaled_residual", {real(bf16, {3, 70, 72}), real(bf16, {3, 136, 72})}, {{"transpose_b", true}}},
       {scaled(bf16), sum({bf16, {3, 70, 136}})},
       {"gemm.matmul.hopper", "gemm.matmul.tensor", "gemm.matmul.general"}});
  list.push_back({OpKind::dual_linear,
                  {"scaled_residual", {real(bf16, {70, 136}), weight(bf16, {72, 136}), weight(bf16, {72, 136})}},
                  {scaled(bf16), sum({bf16, {70, 72}})},
                  {"gemm.dual_linear.hopper", "gemm.dual_linear.tensor", "gemm.dual_linear.general"}});
  list.push_back({OpKind::grouped_linear,
                  {"scaled_residual",
                   {real(bf16, {150, 72}), weight(bf16, {3, 136, 72}),
                    CaseOperand{{DType::i32, {4}}, values({0, 3, 3, 150})}, real(bf16, {3, 136})}},
                  {scaled(bf16), sum({bf16, {150, 136}})},
                  {"gemm.grouped_linear.hopper", "gemm.grouped_linear.tensor", "gemm.grouped_linear.general"}});
  return list;
}

class EpilogueScaledResidual : public testing::TestWithParam<EpilogueCase> {};
TEST_P(EpilogueScaledResidual, AgreesWithTheReferences) { expect_agrees(GetParam()); }
TEST_P(EpilogueScaledResidual, IsTakenByEveryFamily) { expect_taken(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Epilogue, EpilogueScaledResidual, testing::ValuesIn(residual_cases()), name_of_case);

}  // namespace
}  // namespace cermet
