// What may follow a product, and what its own epilogue reads, in every family that takes it.
#include "tests/kernel_cuda/epilogue_case.hpp"

#include "kernel/cuda/device/tile/epilogue.hpp"
#include "tests/support/rotated_regions.hpp"

namespace cermet {
namespace {

std::vector<EpilogueCase> epilogue_cases() {
  constexpr DType bf16 = DType::bf16, f32 = DType::f32;
  std::vector<EpilogueCase> list;
  const auto sum = [](TensorType other) { return After{{OpKind::add, std::move(other), true}, normal()}; };
  list.push_back({OpKind::linear,
                  {"bias_gelu", {real(bf16, {150, 272}), weight(bf16, {136, 272})}},
                  {After{{OpKind::add, TensorType{bf16, {136}}}, normal()}, After{{OpKind::gelu}}},
                  {"gemm.linear.hopper", "gemm.linear.tensor", "gemm.linear.general"}});
  list.push_back({OpKind::linear,
                  {"rows_and_columns", {real(bf16, {2, 75, 272}), weight(bf16, {512, 272})}, to("f32")},
                  {After{{OpKind::mul, TensorType{f32, {2, 75, 1}}}, normal()},
                   After{{OpKind::sub, TensorType{f32, {1, 1, 512}}}, normal()}},
                  {"gemm.linear.hopper", "gemm.linear.tensor", "gemm.linear.general"}});
  // Few rows: columns of the tensor cores' results are rows of these.
  const std::vector<std::string_view> few{"gemm.linear.hopper", "gemm.linear.stream", "gemm.linear.tensor",
                                          "gemm.linear.general"};
  for (const std::int64_t m : {2, 15, 33, 64}) {
    list.push_back({OpKind::linear,
                    {fmt::format("few_bias_gelu_residual_{}", m),
                     {real(bf16, {m, 520}), weight(bf16, {3080, 520}), real(f32, {3080})}},
                    {After{{OpKind::gelu}}, sum({bf16, {m, 3080}})},
                    few});
    list.push_back({OpKind::linear,
                    {fmt::format("few_rows_and_columns_{}", m),
                     {real(DType::f16, {m, 272}), weight(DType::f16, {16, 272})},
                     to("f32")},
                    {After{{OpKind::mul, TensorType{f32, {m, 1}}}, normal()},
                     After{{OpKind::sub, TensorType{f32, {1, 16}}}, normal()}},
                    few});
  }
  const CaseOperand a = codes({150, 272}), b = weight(DType::i8, {144, 272}),
                    zero{{DType::i32, {150}}, integers(-128, 127)}, one_zero{{DType::i32, {}}, constant(-7)},
                    integer_bias{{DType::i32, {144}}, integers(-999, 999)};
  const CaseOperand residual = real(bf16, {150, 144}), quantum{{f32, {}}, constant(0.25)};
  const std::vector<std::string_view> all{"gemm.scaled_mm.hopper", "gemm.scaled_mm.tensor", "gemm.scaled_mm.general"};
  list.push_back({OpKind::scaled_mm,
                  {"residual", {a, b, scale({150}), scale({144}), real(f32, {144}), {}, residual}, to("bf16")},
                  {},
                  all});
  list.push_back(
      {OpKind::scaled_mm,
       {"zero_points_i8", {a, b, scale({150}), scale({144}), integer_bias, zero, residual, quantum}, to("i8")},
       {},
       all});
  list.push_back({OpKind::scaled_mm, {"zero_point_i32", {a, b, {}, {}, integer_bias, one_zero}, to("i32")}, {}, all});
  list.push_back(
      {OpKind::scaled_mm,
       {"short_blocks", {codes({150, 112}), weight(DType::i8, {144, 112}), scale({150, 1}), scale({2, 1})}, to("bf16")},
       {},
       all});
  list.push_back({OpKind::scaled_mm,
                  {"zero_points_residual", {a, b, scale({}), scale({144}), {}, zero}, to("f32")},
                  {sum({f32, {150, 144}})},
                  all});
  list.push_back({OpKind::scaled_mm,
                  {"one_row_zero_point",
                   {codes({1, 528}), weight(DType::i8, {48, 528}), scale({1}), scale({48}), {}, one_zero},
                   to("bf16")},
                  {sum({bf16, {1, 48}})},
                  {"gemv.scaled_mm", "gemm.scaled_mm.hopper", "gemm.scaled_mm.tensor", "gemm.scaled_mm.general"}});
  return list;
}

class Epilogue : public testing::TestWithParam<EpilogueCase> {};
TEST_P(Epilogue, AgreesWithTheReferences) { expect_agrees(GetParam()); }
TEST_P(Epilogue, IsTakenByEveryFamily) { expect_taken(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Epilogue, Epilogue, testing::ValuesIn(epilogue_cases()), name_of_case);

TEST(EpilogueChoice, ANormalizationMayComeBefore) {
  const auto device = make_null_device(90);
  Region region = with_norm(
      problem_of(OpKind::linear, {"", {real(DType::f32, {1, 4096}), weight(DType::bf16, {4096, 4096})}, to("f32")}),
      true);
  region = followed(region, scaled_residual({DType::f32, {1, 4096}}));
  region.set_target(device->target());
  verify(region);
  EXPECT_EQ(select_kernel(region).kernel->name, "gemv.norm_linear");
}

TEST(EpilogueChoice, FewRowsStreamWithWhatFollows) {
  const auto device = make_null_device(90);
  const auto chosen = [&](std::int64_t m) {
    Region region =
        problem_of(OpKind::linear, {"", {real(DType::bf16, {m, 4096}), weight(DType::bf16, {6144, 4096})}, to("f32")});
    region = followed(region, scaled_residual({DType::f32, {m, 6144}}));
    region.set_target(device->target());
    verify(region);
    return select_kernel(region).kernel->name;
  };
  EXPECT_EQ(chosen(2), "gemm.linear.stream");
  EXPECT_EQ(chosen(64), "gemm.linear.stream");
  EXPECT_EQ(chosen(65), "gemm.linear.hopper");
}

TEST(EpilogueChoice, WhatCannotFollowIsSaid) {
  const auto device = make_null_device(90);
  const Problem product =
      problem_of(OpKind::linear, {"", {real(DType::bf16, {64, 64}), weight(DType::bf16, {64, 64})}});
  const auto reason = [&](Region region) {
    region.set_target(device->target());
    const auto kernels = cuda::kernels_of(OpKind::linear);
    return decline_of(**std::ranges::find(kernels, "gemm.linear.hopper", &Kernel::name), region).value_or("takes it");
  };
  Region three = followed(product, {{OpKind::silu}, {OpKind::silu}});
  three.results.insert(three.results.end(), {{0, 0}, {1, 0}});
  EXPECT_EQ(reason(three), "3 results leave after the product, and two can");
  EXPECT_EQ(reason(followed(product, {{OpKind::softmax}})),
            "softmax after linear: only elementwise operators can follow");
  Region normalized =
      with_norm(problem_of(OpKind::linear, {"", {real(DType::f32, {1, 64}), weight(DType::bf16, {64, 64})}}), false);
  EXPECT_EQ(reason(normalized), "computes nothing before the product");
  const std::vector<Follower> many(epilogue::most_extras + 1, {OpKind::add, TensorType{DType::bf16, {64, 64}}});
  EXPECT_EQ(reason(followed(product, many)), "9 operands are read after the product, and 8 can be");
}

TEST(EpilogueChoice, WhyHeadsAreNotRotatedIsSaid) {
  const auto device = make_null_device(90);
  const auto reason_of = [](const Region& region) {
    const auto kernels = cuda::kernels_of(region.problem().op->kind);
    const bool is_linear = region.problem().op->kind == OpKind::linear, is_row = region.problem().size(0, 0) == 1;
    const auto name = is_row      ? (is_linear ? "gemv.linear" : "gemv.scaled_mm")
                      : is_linear ? "gemm.linear.stream"
                                  : "gemm.scaled_mm.stream";
    return decline_of(**std::ranges::find(kernels, name, &Kernel::name), region).value_or("takes it");
  };
  const auto reason = [&](const RotatedCase& c, Rounding rounding = Rounding::strict) {
    return reason_of(rotated_region(c, device->target(), rounding));
  };
  EXPECT_EQ(reason({}), "takes it");
  EXPECT_EQ(reason({.head_norms = true}),
            "heads are normalized before they are rotated, and a block has parts of them");
  EXPECT_EQ(reason({.cache = DType::i8, .token_scales = true}), "the cache is quantized with scales");
  EXPECT_EQ(reason({.w = DType::f8_e4m3}), "takes it");
  EXPECT_EQ(reason({.k = 20480}), "rows of 20480 elements leave no registers for rotation");
  EXPECT_EQ(reason({.value = 33}), "a head has no whole number of pairs");
  EXPECT_EQ(reason({.product = DType::bf16}, Rounding::fast), "heads are not rounded before they are rotated");
  Region read = rotated_region({}, device->target());
  read.results.push_back({read.anchor, 0});
  EXPECT_EQ(reason_of(read), "what the product gives is read elsewhere");
  EXPECT_EQ(reason({.rows = 8}), "takes it");
  EXPECT_EQ(reason({.rows = 33}), "more than 32 rows are rotated as soon by a launch of its own");
  EXPECT_EQ(reason({.head = 80, .value = 36, .rows = 8}), "a head's pairs are not shared out by eights");
  EXPECT_EQ(reason({.head = 96, .rotary = 36, .rows = 8}), "a head's pairs are not shared out by eights");
  EXPECT_EQ(reason({.head_norms = true, .rows = 8}),
            "heads are normalized before they are rotated, and a block has parts of them");
}

}  // namespace
}  // namespace cermet
