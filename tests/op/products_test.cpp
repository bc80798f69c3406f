// What the linear algebra operators reject, with the messages.
#include <gtest/gtest.h>

#include "op/product_operands.hpp"
#include "op/schema/operator.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

using Types = std::vector<std::optional<TensorType>>;

std::string refusal(const char* op, Types types, const Attributes& attributes = {}) {
  return error_text([&] { make_problem(*find_operator(op), types, attributes); });
}

constexpr auto absent = std::nullopt;
using enum DType;
constexpr DType fp8 = DType::f8_e4m3;

TEST(Products, OperandsAreNumberedAsInTheSchemas) {
  const auto names = [](OpKind op) {
    const ProductOperands at = product_operands(op);
    std::string text;
    for (const std::size_t i :
         {at.w_up, at.offsets, at.x_scale, at.w_scale, at.bias, at.bias_up, at.zero_point, at.residual, at.out_scale})
      text += i == ProductOperands::none ? "- " : fmt::format("{} ", definition(op).inputs.at(i).name);
    return text;
  };
  EXPECT_EQ(names(OpKind::linear), "- - - - bias - - - - ");
  EXPECT_EQ(names(OpKind::dual_linear), "w_up - - - bias_gate bias_up - - - ");
  EXPECT_EQ(names(OpKind::scaled_mm), "- - a_scale b_scale bias - a_zp residual out_scale ");
  EXPECT_EQ(names(OpKind::grouped_linear), "- offsets x_scale w_scale bias - - - - ");
  EXPECT_EQ(names(OpKind::conv), "- - - - bias - - residual - ");
  EXPECT_EQ(names(OpKind::conv_transpose), "- - - - bias - - - - ");
  EXPECT_EQ(names(OpKind::matmul), "- - - - - - - - - ");
}

TEST(Products, RefuseOperandsThatDoNotFit) {
  EXPECT_EQ(refusal("linear", {TensorType{f32, {3, 8}}, TensorType{f32, {5, 7}}}),
            "linear: operand 1 (w): expected dimension 1 to be 8 (K of x), found f32[5, 7]");
  EXPECT_EQ(refusal("linear", {TensorType{f32, {3, 8}}, TensorType{f32, {5, 8}}, TensorType{f32, {4}}}),
            "linear: operand 2 (bias): expected dimensions [5] (N of w), found f32[4]");
  EXPECT_EQ(refusal("linear", {TensorType{f32, {3, 8}}, TensorType{f32, {5, 8}}}, {{"out_dtype", "i8"}}),
            "linear: attribute 'out_dtype': expected f16, bf16 or f32, found \"i8\"");
  EXPECT_EQ(refusal("dual_linear", {TensorType{f32, {3, 8}}, TensorType{f32, {5, 8}}, TensorType{bf16, {5, 8}}}),
            "dual_linear: operand 2 (w_up): expected f32 (that of w_gate), found bf16");
  EXPECT_EQ(refusal("matmul", {TensorType{f32, {3, 8}}, TensorType{f32, {7, 8}}}),
            "matmul: operand 1 (b): expected dimension -2 to be 8 (K of a), found f32[7, 8]");
  EXPECT_EQ(refusal("matmul", {TensorType{f32, {2, 3, 8}}, TensorType{f32, {5, 8, 7}}}),
            "matmul: operand 1 (b): expected dimensions that broadcast with [2], found [5]");
  EXPECT_EQ(refusal("grouped_linear", {TensorType{f32, {3, 8}}, TensorType{f32, {4, 5, 8}}, TensorType{i32, {4}}}),
            "grouped_linear: operand 2 (offsets): expected dimensions [5] (E of w and one more), found i32[4]");
  EXPECT_EQ(refusal("grouped_linear", {TensorType{i8, {3, 8}}, TensorType{f32, {4, 5, 8}}, TensorType{i32, {5}}}),
            "grouped_linear: operand 1 (w): expected a quantized type, because x has one, found f32");
  EXPECT_EQ(refusal("grouped_linear", {TensorType{f32, {3, 8}}, TensorType{f32, {4, 5, 8}}, TensorType{i32, {5}},
                                       absent, TensorType{f32, {3}}}),
            "grouped_linear: operand 4 (x_scale): expected none, because x is not quantized, found f32[3]");
}

TEST(Products, ScaledMmRefusesScalesThatDoNotFit) {
  const TensorType a{i8, {3, 300}}, b{i8, {5, 300}};
  EXPECT_EQ(refusal("scaled_mm", {a, TensorType{fp8, {5, 300}}}),
            "scaled_mm: operand 1 (b): expected i8, because the other operand is, found f8_e4m3");
  EXPECT_EQ(refusal("scaled_mm", {a, b, TensorType{f32, {4}}}),
            "scaled_mm: operand 2 (a_scale): expected [], [3], [3, 1] or [3, K/128], found f32[4]");
  EXPECT_EQ(refusal("scaled_mm", {a, b, absent, TensorType{f32, {1, 2}}}),
            "scaled_mm: operand 3 (b_scale): expected [], [5], [5, 1], [1, 5] or [N/128, K/128], found f32[1, 2]");
  EXPECT_EQ(refusal("scaled_mm", {a, b, TensorType{f32, {3, 3}}, absent, absent, TensorType{i32, {}}}),
            "scaled_mm: operand 5 (a_zp): expected none, because a scale covers blocks of K, found i32[]");
  EXPECT_EQ(refusal("scaled_mm", {a, b, TensorType{f32, {3, 3}}, absent, TensorType{i32, {5}}}),
            "scaled_mm: operand 4 (bias): expected a real type, because a scale covers blocks of K, found i32[5]");
  EXPECT_EQ(
      refusal("scaled_mm", {TensorType{i8, {3, 200000}}, TensorType{i8, {5, 200000}}}),
      "scaled_mm: operand 0 (a): expected K of at most 131071, so that int32 sums are exact, found i8[3, 200000]");
}

TEST(Products, ScaledMmRefusesResultsWithoutMeaning) {
  const TensorType a{i8, {3, 8}}, b{i8, {5, 8}}, real{fp8, {3, 8}}, real_b{fp8, {5, 8}}, one{f32, {}};
  EXPECT_EQ(refusal("scaled_mm", {a, b, one}, {{"out_dtype", "i32"}}),
            "scaled_mm: operand 2 (a_scale): expected none, because the result is i32, found f32[]");
  EXPECT_EQ(refusal("scaled_mm", {a, b}, {{"out_dtype", "i8"}}),
            "scaled_mm: operand 7 (out_scale): expected one value, because the result is i8; found nothing");
  EXPECT_EQ(refusal("scaled_mm", {a, b, absent, absent, absent, absent, absent, one}),
            "scaled_mm: operand 7 (out_scale): expected none, because the result is not i8, found f32[]");
  EXPECT_EQ(refusal("scaled_mm", {real, real_b}, {{"out_dtype", "i32"}}),
            "scaled_mm: attribute 'out_dtype': expected a real type, because a is not i8, found \"i32\"");
  EXPECT_EQ(refusal("scaled_mm", {real, real_b, absent, absent, TensorType{i32, {5}}}),
            "scaled_mm: operand 4 (bias): expected a real type, because a is not i8, found i32[5]");
  EXPECT_EQ(refusal("scaled_mm", {real, real_b, absent, absent, absent, TensorType{i32, {}}}),
            "scaled_mm: operand 5 (a_zp): expected none, because a is not i8, found i32[]");
}

}  // namespace
}  // namespace cermet
