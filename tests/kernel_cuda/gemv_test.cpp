// GEMVs (matrix products of few rows) at lengths that reach every division of a row: few and many warps along it,
// several rows or a part of one in a stage, tails of every kind, rows that are not 16-byte aligned, more columns than
// blocks.
#include "kernel/cuda/kernels.hpp"
#include "op/schema/operator.hpp"
#include "tests/kernel_cuda/device_case.hpp"
#include "tests/kernel_cuda/operands.hpp"

namespace cermet {
namespace {

CaseOperand gemv_weight(DType t, std::vector<Dim> dims, std::int64_t padding = 0, bool constant = true) {
  return {{t, std::move(dims)}, t == DType::i8 ? integers(-128, 127) : normal(0.2), padding, constant};
}

/// Every kernel of the family "gemv" that takes the case.
void check_gemv(OpKind kind, const Case& recipe) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const OpDefinition& op = definition(kind);
  CaseData data = make_case_data(op, recipe);
  data.problem.target = gpu.device->target();
  const Expected expected = run_reference(data);
  int taken = 0;
  for (const Kernel* kernel : enabled_kernels_of(kind)) {
    if (!kernel->name.starts_with("gemv.") || kernel->declines(data.problem)) continue;
    ++taken;
    EXPECT_EQ(run_on_device(data, expected, *kernel, 3, gpu.queue(), gpu.pool), "")
        << op.name << " case " << recipe.name << ", kernel " << kernel->name;
  }
  EXPECT_GT(taken, 0) << recipe.name;
}

TEST(Gemv, LinearOfEveryLength) {
  for (const std::int64_t k : {1,    7,    8,    16,   40,   136,   256,   520,   640,   1000, 2048,
                               2056, 3072, 4096, 5632, 8192, 14336, 16392, 28672, 28680, 40000})
    for (const DType x : {DType::f32, DType::bf16})
      check_gemv(OpKind::linear, {fmt::format("{}_{}", name_of(x), k),
                                  {real(x, {1, k}), gemv_weight(DType::bf16, {45, k}), real(DType::f32, {45})},
                                  {{"out_dtype", "f32"}}});
}

TEST(Gemv, LinearOfEveryType) {
  for (const DType x : {DType::f32, DType::bf16, DType::f16})
    for (const DType w : {DType::f32, DType::bf16, DType::f16})
      for (const std::int64_t k : {264, 2048, 6000})
        check_gemv(OpKind::linear,
                   {fmt::format("{}_{}_{}", name_of(x), name_of(w), k), {real(x, {1, k}), gemv_weight(w, {37, k})}});
}

TEST(Gemv, ManyColumns) {
  for (const std::int64_t n : {1, 131, 133, 1000, 4099})
    for (const std::int64_t k : {64, 512, 2048})
      check_gemv(OpKind::linear,
                 {fmt::format("{}_{}", n, k), {real(DType::f32, {1, k}), gemv_weight(DType::bf16, {n, k})}});
}

TEST(Gemv, RowsApart) {
  for (const std::int64_t k : {64, 2048, 20480})
    for (const std::int64_t padding : {3, 8})
      for (const bool constant : {false, true})
        check_gemv(OpKind::linear,
                   {fmt::format("{}_{}_{}", k, padding, constant),
                    {real(DType::f32, {1, k}, padding), gemv_weight(DType::bf16, {45, k}, padding, constant)}});
}

TEST(Gemv, DualLinear) {
  for (const std::int64_t k : {40, 2048, 5632, 20480})
    for (const std::int64_t padding : {0, 3})
      check_gemv(OpKind::dual_linear, {fmt::format("{}_{}", k, padding),
                                       {real(DType::f32, {1, k}), gemv_weight(DType::bf16, {300, k}, padding),
                                        gemv_weight(DType::bf16, {300, k}, padding)}});
}

TEST(Gemv, Scaled) {
  for (const std::int64_t k : {16, 131, 512, 4096, 14336, 40000})
    for (const std::int64_t padding : {0, 5}) {
      const std::int64_t blocks = (k + 127) / 128;
      check_gemv(OpKind::scaled_mm,
                 {fmt::format("i8_{}_{}", k, padding),
                  {codes({1, k}), gemv_weight(DType::i8, {200, k}, padding), scale({1}), scale({200})}});
      check_gemv(OpKind::scaled_mm,
                 {fmt::format("zero_points_{}_{}", k, padding),
                  {codes({1, k}), gemv_weight(DType::i8, {45, k}, padding), scale({1}), scale({45}),
                   CaseOperand{{DType::i32, {45}}, integers(-9, 9)},
                   CaseOperand{{DType::i32, {1}}, integers(-128, 127)}, CaseOperand{{DType::bf16, {1, 45}}}},
                  {{"out_dtype", "bf16"}}});
      check_gemv(OpKind::scaled_mm,
                 {fmt::format("i8_blocks_{}_{}", k, padding),
                  {codes({1, k}), gemv_weight(DType::i8, {200, k}, padding), scale({1, blocks}), scale({2, blocks})}});
      for (const DType w : {DType::f8_e4m3, DType::f8_e5m2}) {
        check_gemv(OpKind::scaled_mm,
                   {fmt::format("{}_{}_{}", name_of(w), k, padding),
                    {real(DType::f8_e4m3, {1, k}), gemv_weight(w, {45, k}, padding), scale({1}), scale({45})}});
        check_gemv(OpKind::scaled_mm, {fmt::format("{}_blocks_{}_{}", name_of(w), k, padding),
                                       {real(DType::f8_e5m2, {1, k}), gemv_weight(w, {200, k}, padding),
                                        scale({1, blocks}), scale({2, blocks})}});
      }
    }
}

/// Each operand of the epilogue without the others.
TEST(Gemv, PartsOfTheEpilogueAlone) {
  const CaseOperand a = codes({1, 272}), b = gemv_weight(DType::i8, {45, 272});
  for (const Case& recipe :
       std::vector<Case>{{"row_scale", {a, b, scale({1})}},
                         {"column_scales", {a, b, {}, scale({45})}},
                         {"bias", {a, b, {}, {}, CaseOperand{{DType::f32, {45}}}}},
                         {"integer_bias", {a, b, {}, {}, CaseOperand{{DType::i32, {45}}, integers(-999, 999)}}},
                         {"zero_point", {a, b, {}, {}, {}, CaseOperand{{DType::i32, {1}}, constant(-77)}}},
                         {"residual", {a, b, {}, {}, {}, {}, real(DType::bf16, {1, 45})}},
                         {"out_scale",
                          {a, b, {}, {}, {}, {}, {}, CaseOperand{{DType::f32, {}}, constant(3000)}},
                          {{"out_dtype", "i8"}}},
                         {"integers", {a, b}, {{"out_dtype", "i32"}}}})
    check_gemv(OpKind::scaled_mm, recipe);
  const CaseOperand x = real(DType::f32, {1, 520}), w = gemv_weight(DType::bf16, {45, 520}), bias{{DType::f32, {45}}};
  check_gemv(OpKind::dual_linear, {"gate_bias", {x, w, w, bias}});
  check_gemv(OpKind::dual_linear, {"up_bias", {x, w, w, {}, bias}});
}

TEST(Gemv, Grouped) {
  const CaseOperand offsets{{DType::i32, {6}}, values({0, 1, 1, 4, 4, 9})};
  for (const std::int64_t k : {40, 768, 2048, 20480}) {
    check_gemv(OpKind::grouped_linear, {fmt::format("bf16_{}", k),
                                        {real(DType::bf16, {9, k}), gemv_weight(DType::bf16, {5, 70, k}), offsets},
                                        {{"out_dtype", "f32"}}});
    check_gemv(OpKind::grouped_linear, {fmt::format("i8_{}", k),
                                        {codes({9, k}), gemv_weight(DType::i8, {5, 70, k}), offsets,
                                         CaseOperand{{DType::f32, {5, 70}}}, scale({9}), scale({5, 70})}});
    check_gemv(OpKind::grouped_linear, {fmt::format("fp8_{}", k),
                                        {real(DType::f8_e4m3, {9, k}),
                                         gemv_weight(DType::f8_e4m3, {5, 70, k}),
                                         offsets,
                                         {},
                                         scale({9, (k + 127) / 128}),
                                         scale({5, 1, (k + 127) / 128})}});
  }
}

}  // namespace
}  // namespace cermet
