// Sizes and operands that reach every branch of the CPU products' control, beyond the operators' own cases: groups of
// row blocks that stream or reuse panels, slices of a long reduction, rows past packed_row_limit, every tail, each
// prologue and epilogue alone.
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/kernels.hpp"
#include "op/schema/operator.hpp"
#include "tests/kernel/conformance.hpp"

namespace cermet {
namespace {

constexpr std::int64_t past_limit = cpu::packed_row_limit + 7;

void expect_agrees(std::string_view op, const Case& test_case) {
  const OpDefinition& definition = *find_operator(op);
  expect_case_conforms(definition, test_case, cpu::kernels_of(definition.kind), true);
}

CaseOperand rows(DType type, std::int64_t m, std::int64_t k) { return {{type, {m, k}}}; }
CaseOperand weight(DType type, Dims dims) { return {{type, std::move(dims)}, normal(0.2), 0, true}; }
CaseOperand codes(Dims dims, bool constant = false) {
  return {{DType::i8, std::move(dims)}, integers(-128, 127), 0, constant};
}
CaseOperand scale(Dims dims) { return {{DType::f32, std::move(dims)}, uniform(0.001, 0.02)}; }
CaseOperand offsets(std::vector<double> list) {
  const auto count = static_cast<std::int64_t>(list.size());
  return {{DType::i32, {count}}, values(std::move(list))};
}

struct Types {
  DType x, weight;
};
constexpr Types types[] = {
    {DType::bf16, DType::bf16}, {DType::f32, DType::f32}, {DType::bf16, DType::f16}, {DType::f32, DType::bf16}};

TEST(GemmCases, ManyRowsReusePanelsAndCrossThePackedRowLimit) {
  for (const auto& [x, w] : types)
    for (const std::int64_t m : {std::int64_t{57}, std::int64_t{127}, cpu::packed_row_limit, past_limit})
      expect_agrees("linear", {fmt::format("{}_{}_{}", name_of(x), name_of(w), m),
                               {rows(x, m, 35), weight(w, {70, 35}), CaseOperand{{DType::f32, {70}}}}});
}

TEST(GemmCases, LongReductionsAreSliced) {
  for (const auto& [x, w] : types)
    for (const std::int64_t m : {1, 3, 14, 20, 58})
      expect_agrees("linear", {fmt::format("{}_{}_{}", name_of(x), name_of(w), m),
                               {rows(x, m, 4099), weight(w, {33, 4099})},
                               {{"out_dtype", "f32"}}});
}

TEST(GemmCases, EveryTailOfRowsColumnsAndReduction) {
  for (const auto& [x, w] : types)
    for (const std::int64_t n : {1, 33})
      for (const std::int64_t k : {1, 33})
        for (const std::int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 28, 29, 43})
          expect_agrees("linear", {fmt::format("{}_{}_{}_{}_{}", name_of(x), name_of(w), m, n, k),
                                   {rows(x, m, k), weight(w, {n, k})}});
}

TEST(GemmCases, DualProductsOfManyRowsAndLongReductions) {
  for (const auto& [x, w] : types) {
    const std::string name = fmt::format("{}_{}", name_of(x), name_of(w));
    for (const std::int64_t m : {std::int64_t{60}, past_limit})
      expect_agrees("dual_linear",
                    {name, {rows(x, m, 33), weight(w, {40, 33}), weight(w, {40, 33})}, {{"activation", "silu"}}});
    expect_agrees(
        "dual_linear",
        {name + "_long", {rows(x, 20, 2101), weight(w, {33, 2101}), weight(w, {33, 2101})}, {{"out_dtype", "f32"}}});
  }
  for (const std::size_t bias : {3, 4}) {  // each alone
    std::vector<std::optional<CaseOperand>> operands{
        rows(DType::bf16, 17, 33), weight(DType::bf16, {40, 33}), weight(DType::bf16, {40, 33}), {}, {}};
    operands[bias] = CaseOperand{{DType::bf16, {40}}};
    expect_agrees("dual_linear", {fmt::format("operand_{}", bias), operands});
  }
}

TEST(GemmCases, GroupsOfFewAndManyRowsAndLongReductions) {
  for (const auto& [x, w] : types) {
    const std::string name = fmt::format("{}_{}", name_of(x), name_of(w));
    expect_agrees("grouped_linear", {name,
                                     {rows(x, past_limit, 35), weight(w, {4, 70, 35}),
                                      offsets({0, 0, 70, 71, static_cast<double>(past_limit)})}});
    expect_agrees("grouped_linear", {name + "_long",
                                     {rows(x, 53, 2101), weight(w, {3, 33, 2101}), offsets({0, 3, 36, 53})},
                                     {{"out_dtype", "f32"}}});
  }
}

TEST(GemmCases, MatmulOfManyRows) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const CaseOperand b{{type, {35, 40}}};
    expect_agrees("matmul", {"folded", {CaseOperand{{type, {2, past_limit / 2 + 1, 35}}}, b}});
    expect_agrees("matmul", {"transposed", {CaseOperand{{type, {35, past_limit}}}, b}, {{"transpose_a", true}}});
    expect_agrees("matmul", {"long", {rows(type, 60, 2101), CaseOperand{{type, {2101, 33}}}}, {{"out_dtype", "f32"}}});
  }
}

/// Operands that differ from row to row, so that rows past the limit must find their own.
TEST(GemmCases, ScaledProductsOfManyRows) {
  const std::int64_t m = past_limit;
  const CaseOperand zero_points{{DType::i32, {m}}, integers(-128, 127)}, residual{{DType::bf16, {m, 40}}},
      bias{{DType::f32, {40}}};
  expect_agrees("scaled_mm",
                {"i8",
                 {codes({m, 70}), codes({40, 70}, true), scale({m}), scale({40}), bias, zero_points, residual},
                 {{"out_dtype", "f32"}}});
  expect_agrees(
      "scaled_mm",
      {"i8_blocks", {codes({m, 300}), codes({40, 300}, true), scale({m, 3}), scale({1, 3})}, {{"out_dtype", "bf16"}}});
  for (const DType type : {DType::f8_e4m3, DType::f8_e5m2})
    expect_agrees("scaled_mm", {std::string(name_of(type)),
                                {rows(type, m, 70), weight(type, {40, 70}), scale({m}), scale({40})},
                                {{"out_dtype", "f32"}}});
  const CaseOperand groups = offsets({0, 70, 70, static_cast<double>(m)});
  expect_agrees("grouped_linear",
                {"i8", {codes({m, 70}), codes({3, 40, 70}, true), groups, {}, scale({m}), scale({3, 40})}});
}

TEST(GemmCases, EachEpilogueOfAScaledProductAlone) {
  constexpr std::int64_t m = 19, n = 41, k = 90;
  const CaseOperand zero_points{{DType::i32, {m}}, integers(-128, 127)}, residual{{DType::f16, {m, n}}},
      real_bias{{DType::bf16, {n}}}, integer_bias{{DType::i32, {n}}, integers(-5000, 5000)},
      out_scale{{DType::f32, {}}, constant(0.37)};
  using Operands = std::vector<std::optional<CaseOperand>>;
  const auto expect_with = [&](std::string name, Operands more, std::string_view out, bool fp8 = false) {
    Operands all{fp8 ? rows(DType::f8_e4m3, m, k) : codes({m, k}),
                 fp8 ? weight(DType::f8_e4m3, {n, k}) : codes({n, k}, true), scale({m}), scale({n})};
    all.insert(all.end(), more.begin(), more.end());
    expect_agrees("scaled_mm", {std::move(name), std::move(all), {{"out_dtype", std::string(out)}}});
  };
  for (const std::string_view out : {"f32", "bf16", "f16"}) {
    expect_with("real_bias", {real_bias}, out);
    expect_with("integer_bias", {integer_bias}, out);
    expect_with("zero_points", {{}, zero_points}, out);
    expect_with("residual", {{}, {}, residual}, out);
    expect_with("fp8_bias", {real_bias}, out, true);
    expect_with("fp8_residual", {{}, {}, residual}, out, true);
  }
  expect_with("out_scale", {{}, {}, {}, out_scale}, "i8");
}

/// bf16 dot products take subnormal elements as zero, which the operators' bound allows for; what is normal must not be
/// lost beside them.
TEST(GemmCases, SubnormalElementsStayWithinTheBound) {
  const CaseOperand x{{DType::bf16, {20, 6}}, values({0x1p-130, 1, -0x1p-127, 0x1p-133, 2, -3, 0.5})};
  CaseOperand w{{DType::bf16, {33, 6}}, values({0x1p100, 0x1p-128, 1, -2, 0x1p-120}), 0, true};
  expect_agrees("linear", {"subnormal", {x, w}, {{"out_dtype", "f32"}}});
  expect_agrees("dual_linear", {"subnormal", {x, w, w}, {{"out_dtype", "f32"}, {"activation", "relu"}}});
}

}  // namespace
}  // namespace cermet
