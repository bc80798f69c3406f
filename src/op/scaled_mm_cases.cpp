// Cases of scaled_mm: every type of result, form of scale and optional operand, at sizes that leave tails in rows,
// columns and reduction.
#include "op/scales.hpp"
#include "op/schema/operator.hpp"

namespace cermet::scaled_mm_op {

namespace {

using Operands = std::vector<std::optional<CaseOperand>>;

CaseOperand quantized(std::vector<Dim> dims, bool constant = false) {
  return {{DType::i8, std::move(dims)}, integers(-128, 127), 0, constant};
}
CaseOperand fp8(DType t, std::vector<Dim> dims, bool constant = false) {
  return {{t, std::move(dims)}, normal(), 0, constant};
}
CaseOperand scale(std::vector<Dim> dims) { return {{DType::f32, std::move(dims)}, uniform(0.001, 0.02)}; }
Attributes to(std::string_view dtype) { return {{"out_dtype", std::string(dtype)}}; }

void add_integer_cases(std::vector<Case>& list) {
  for (const std::int64_t m : {1, 2, 9, 18})
    for (const std::string_view out : {"f32", "bf16", "f16"})
      list.push_back({fmt::format("i8_m{}_{}", m, out),
                      {quantized({m, 131}), quantized({67, 131}, true), scale({m}), scale({67})},
                      to(out)});
  list.push_back({"i8_tensor_scales", {quantized({3, 64}), quantized({32, 64}, true), scale({}), scale({1})}});
  list.push_back({"i8_no_scales", {quantized({3, 64}), quantized({33, 64}, true)}});
  list.push_back(
      {"i8_scale_columns_of_one", {quantized({3, 300}), quantized({33, 300}, true), scale({3, 1}), scale({33, 1})}});
  list.push_back(
      {"i8_blocks", {quantized({5, 300}), quantized({140, 300}, true), scale({5, 3}), scale({2, 3})}, to("bf16")});
  list.push_back(
      {"i8_row_blocks_only", {quantized({17, 256}), quantized({33, 256}, true), scale({17, 2}), scale({33})}});
  list.push_back(
      {"i8_column_blocks_only",
       {quantized({2, 257}), quantized({33, 257}, true), scale({2}), scale({1, 3}), CaseOperand{{DType::f32, {33}}}}});
  list.push_back({"i8_to_i32", {quantized({5, 77}), quantized({35, 77}, true)}, to("i32")});
  list.push_back({"i8_to_i32_bias",
                  {quantized({5, 77}),
                   quantized({35, 77}, true),
                   {},
                   {},
                   CaseOperand{{DType::i32, {35}}, integers(-100000, 100000)}},
                  to("i32")});
  list.push_back({"i8_largest_sums",
                  {{{{DType::i8, {2, 2100}}, constant(-128)}}, {{{DType::i8, {33, 2100}}, constant(-128), 0, true}}},
                  to("i32")});
  const CaseOperand zero_points{{DType::i32, {6}}, integers(-128, 127)}, real_bias{{DType::bf16, {41}}},
      integer_bias{{DType::i32, {41}}, integers(-5000, 5000)};
  const CaseOperand residual{{DType::bf16, {6, 41}}, normal(), 5}, out_scale{{DType::f32, {}}, constant(0.37)};
  const Operands base{quantized({6, 90}), quantized({41, 90}, true), scale({6}), scale({41})};
  const auto with = [&](std::string name, Operands more, std::string_view out) {
    Operands all = base;
    all.insert(all.end(), more.begin(), more.end());
    list.push_back({std::move(name), std::move(all), to(out)});
  };
  with("i8_bias", {real_bias}, "f32");
  with("i8_integer_bias", {integer_bias}, "bf16");
  with("i8_zero_points", {{}, zero_points}, "f32");
  with("i8_one_zero_point", {real_bias, CaseOperand{{DType::i32, {}}, constant(-7)}}, "f32");
  with("i8_residual", {{}, {}, residual}, "bf16");
  with("i8_everything", {integer_bias, zero_points, residual}, "f16");
  with("i8_to_i8", {real_bias, zero_points, residual, out_scale}, "i8");
  with("i8_to_i8_zero_scale", {{}, {}, {}, CaseOperand{{DType::f32, {1}}, constant(0)}}, "i8");
  list.push_back({"i8_nan_scale",
                  {quantized({3, 16}), quantized({8, 16}, true),
                   CaseOperand{{DType::f32, {3}}, values({1, NAN, INFINITY})}, scale({8})}});
  list.push_back({"i8_batched",
                  {quantized({3, 5, 66}),
                   quantized({34, 66}, true),
                   scale({3, 5}),
                   scale({34}),
                   {},
                   CaseOperand{{DType::i32, {3, 5}}, integers(-9, 9)}}});
  list.push_back({"i8_four_dims",
                  {quantized({2, 2, 3, 66}), quantized({34, 66}, true), scale({}), scale({34}),
                   CaseOperand{{DType::f32, {34}}}, CaseOperand{{DType::i32, {}}, constant(5)}}});
  list.push_back({"i8_strided",
                  {CaseOperand{{DType::i8, {4, 3, 50}}, integers(-128, 127), 14},
                   CaseOperand{{DType::i8, {34, 50}}, integers(-128, 127), 6, true},
                   CaseOperand{{DType::f32, {4, 3}}, uniform(0.1, 1), 2}, scale({34})}});
  list.push_back({"i8_not_constant", {quantized({5, 300}), quantized({37, 300}), scale({5, 3}), scale({37})}});
  list.push_back({"i8_no_rows", {quantized({0, 16}), quantized({8, 16}, true), scale({0}), scale({8})}});
  list.push_back({"i8_no_columns", {quantized({2, 16}), quantized({0, 16}, true), scale({2}), scale({0})}});
  list.push_back(
      {"i8_no_reduction",
       {quantized({2, 0}), quantized({8, 0}, true), scale({2}), scale({8}), CaseOperand{{DType::f32, {8}}}}});
}

void add_fp8_cases(std::vector<Case>& list) {
  for (const DType a : {DType::f8_e4m3, DType::f8_e5m2})
    for (const DType b : {DType::f8_e4m3, DType::f8_e5m2})
      for (const std::int64_t m : {1, 17})
        list.push_back({fmt::format("{}_{}_m{}", name_of(a), name_of(b), m),
                        {fp8(a, {m, 131}), fp8(b, {67, 131}, true), scale({m}), scale({67})},
                        to("bf16")});
  list.push_back(
      {"fp8_blocks",
       {fp8(DType::f8_e4m3, {5, 300}), fp8(DType::f8_e4m3, {140, 300}, true), scale({5, 3}), scale({2, 3})}});
  list.push_back(
      {"fp8_whole_blocks",
       {fp8(DType::f8_e4m3, {20, 1024}), fp8(DType::f8_e4m3, {256, 1024}, true), scale({20, 8}), scale({2, 8})},
       to("bf16")});
  list.push_back(
      {"fp8_blocks_one_row",
       {fp8(DType::f8_e4m3, {1, 384}), fp8(DType::f8_e4m3, {256, 384}, true), scale({1, 3}), scale({2, 3})}});
  list.push_back({"fp8_bias_residual",
                  {fp8(DType::f8_e4m3, {2, 3, 64}),
                   fp8(DType::f8_e4m3, {33, 64}, true),
                   scale({}),
                   scale({}),
                   CaseOperand{{DType::f32, {33}}},
                   {},
                   CaseOperand{{DType::f16, {2, 3, 33}}}},
                  to("f16")});
  list.push_back(
      {"fp8_not_constant", {fp8(DType::f8_e5m2, {3, 129}), fp8(DType::f8_e4m3, {9, 129}), scale({3}), scale({9})}});
  list.push_back(
      {"fp8_nan",
       {CaseOperand{{DType::f8_e4m3, {2, 4}}, values({1, NAN, 2, 3, 4, 5, 6, 7})}, fp8(DType::f8_e4m3, {8, 4}, true)}});
  list.push_back({"fp8_infinity",
                  {CaseOperand{{DType::f8_e5m2, {2, 4}}, values({1, INFINITY, 2, 3, 4, 5, 6, 7})},
                   fp8(DType::f8_e4m3, {8, 4}, true)}});
}

}  // namespace

std::vector<Case> scaled_mm_cases() {
  std::vector<Case> list;
  add_integer_cases(list);
  add_fp8_cases(list);
  return list;
}

}  // namespace cermet::scaled_mm_op
