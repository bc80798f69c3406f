// Steps of tile programs as CUDA source.
#include "kernel/cuda/step_source.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace cermet::cuda {
namespace {

using Source = TileProgram::Source;

Source input(std::int32_t i) { return {Source::From::input, i}; }
Source extra(std::int32_t i) { return {Source::From::extra, i}; }
Source step(std::int32_t i) { return {Source::From::step, i}; }
Source number(float v) { return {Source::From::number, 0, v}; }

TEST(StepSource, ArithmeticOfRealNumbers) {
  TileProgram p;
  p.inputs = {DType::f32};
  p.extras = {{0, DType::bf16, TileProgram::Extent::column}};
  p.steps = {{.function = OpKind::mul, .a = input(0), .b = extra(0), .round = DType::bf16},
             {.function = OpKind::silu, .a = step(0), .b = {}},
             {.function = OpKind::clip, .a = step(1), .b = {}, .parameters = {-1.5f, INFINITY}},
             {.function = OpKind::cast, .a = step(2), .b = {}, .round = DType::f8_e4m3},
             {.function = OpKind::div, .a = step(3), .b = number(3)}};
  EXPECT_EQ(step_source(p, "  "),
            "  const float s0 = "
            "cermet::to_float(cermet::from_float<cermet::Element<cermet::DType::bf16>>(__fmul_rn(in0, x0)));\n"
            "  const float s1 = cermet::pointwise::settled(cermet::pointwise::silu_row::apply<cermet::Real>(s0, s0, "
            "0x0p+0f, 0x0p+0f).v);\n"
            "  const float s2 = cermet::pointwise::settled(cermet::pointwise::clip_row::apply<cermet::Real>(s1, s1, "
            "-0x1.8p+0f, __uint_as_float(0x7f800000u)).v);\n"
            "  const float s3 = cermet::to_float(cermet::from_float<cermet::Element<cermet::DType::f8_e4m3>>(s2));\n"
            "  const float s4 = __fdiv_rn(s3, 0x1.8p+1f);\n");
  EXPECT_EQ(result_source(p, {0, step(4), DType::f16}), "cermet::from_float<cermet::Element<cermet::DType::f16>>(s4)");
  EXPECT_EQ(result_source(p, {0, step(4), DType::boolean}),
            "static_cast<cermet::Element<cermet::DType::boolean>>(s4 != 0)");
}

/// Fewer instructions where a fast edge brings a value and its node's own 16 bits take it; else the function's bits.
TEST(StepSource, FunctionsBetweenAFastEdgeAnd16Bits) {
  const auto source = [](OpKind function, Source from, DType round, DType result,
                         std::vector<TileProgram::Step> more = {}) {
    TileProgram p;
    p.inputs = {DType::f32};
    p.extras = {{0, DType::f16, TileProgram::Extent::column}};
    p.steps = {{.function = OpKind::add,
                .a = input(0),
                .b = extra(0),
                .round = from.from == Source::From::step ? DType::f32 : DType::f16},
               {.function = function, .a = step(0), .b = {}, .round = round}};
    p.steps.insert(p.steps.end(), more.begin(), more.end());
    p.results = {{0, step(static_cast<std::int32_t>(p.steps.size()) - 1), result}};
    const std::string text = step_source(p, "");
    return text.substr(text.find("s1 = ") + 5, text.find('(', text.find("s1 = ")) - text.find("s1 = ") - 5);
  };
  const Source fast = step(0), strict = input(0);
  const std::string exact = "cermet::pointwise::settled";
  EXPECT_EQ(source(OpKind::silu, fast, DType::f32, DType::f16), "cermet::pointwise::coarse_silu");
  EXPECT_EQ(source(OpKind::gelu_tanh, fast, DType::f32, DType::bf16), "cermet::pointwise::coarse_gelu_tanh");
  EXPECT_EQ(source(OpKind::gelu, fast, DType::f32, DType::f16), "cermet::pointwise::coarse_gelu");
  EXPECT_EQ(source(OpKind::gelu, fast, DType::f32, DType::bf16), exact) << "five terms are for f16";
  EXPECT_EQ(source(OpKind::silu, fast, DType::f32, DType::f32), exact);
  EXPECT_EQ(source(OpKind::silu, strict, DType::f32, DType::f16), exact);
  const TileProgram::Step cast{.function = OpKind::cast, .a = step(1), .b = {}, .round = DType::f16};
  EXPECT_EQ(source(OpKind::silu, fast, DType::f32, DType::f16, {cast}), exact) << "its own type is f32";
}

TEST(StepSource, IntegersWrap) {
  TileProgram p;
  p.inputs = {DType::i32};
  p.extras = {{0, DType::i32, TileProgram::Extent::row}};
  p.steps = {{.function = OpKind::mul, .a = extra(0), .b = input(0), .integer = true},
             {.function = OpKind::max, .a = step(0), .b = input(0), .integer = true},
             {.function = OpKind::cast, .a = step(1), .b = {}}};
  EXPECT_EQ(step_source(p, ""),
            "const int32_t s0 = static_cast<int32_t>(static_cast<uint32_t>(x0) * static_cast<uint32_t>(in0));\n"
            "const int32_t s1 = static_cast<int32_t>(cermet::pointwise::max_row::apply<cermet::Integer>(int64_t{s0}, "
            "int64_t{in0}, 0, 0).value);\n"
            "const float s2 = static_cast<float>(s1);\n");
  EXPECT_EQ(result_source(p, {0, step(1), DType::i32}), "s1");
  EXPECT_EQ(result_source(p, {0, step(1), DType::bf16}),
            "cermet::from_float<cermet::Element<cermet::DType::bf16>>(static_cast<float>(s1))");
}

}  // namespace
}  // namespace cermet::cuda
