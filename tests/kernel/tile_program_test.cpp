#include "kernel/tile_program.hpp"

#include <gtest/gtest.h>

#include "tests/kernel/type.hpp"

namespace cermet {
namespace {

Problem problem(OpKind op, std::vector<std::optional<TensorType>> inputs, const Attributes& attributes = {}) {
  return make_problem(definition(op), std::move(inputs), attributes);
}

std::string epilogue_text(const Region& region) {
  const TileProgramOrReason made = product_epilogue(region);
  return made.reason ? "declined: " + *made.reason : made.program.to_string();
}

/// A product whose result other nodes read.
Region followed(const Problem& product, const std::vector<RegionNode>& others, Rounding rounding) {
  Region region(product);
  region.results.clear();
  for (const RegionNode& other : others) {
    RegionNode node = other;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      RegionInput& from = node.inputs[i];
      if (from.is_inside()) {
        from.rounding = rounding;
      } else {
        region.operands.push_back({static_cast<std::int32_t>(region.nodes.size()), static_cast<std::int32_t>(i)});
        from.index = static_cast<std::int32_t>(region.operands.size() - 1);
      }
    }
    region.nodes.push_back(node);
  }
  region.results.push_back({static_cast<std::int32_t>(region.nodes.size() - 1), 0});
  verify(region);
  return region;
}

const TensorType x = type(DType::bf16, {4, 64}), w = type(DType::bf16, {32, 64}), y = type(DType::bf16, {4, 32});

TEST(TileProgram, OfProducts) {
  EXPECT_EQ(epilogue_text(problem(OpKind::matmul, {x, type(DType::bf16, {64, 32})})), "in0: f32; y0: bf16 = in0");
  EXPECT_EQ(epilogue_text(problem(OpKind::linear, {x, w, type(DType::f32, {32})})),
            "in0: f32; x0: $2 f32 column; s0 = add(in0, x0); y0: bf16 = s0");
  EXPECT_EQ(
      epilogue_text(
          problem(OpKind::dual_linear, {x, w, w, std::nullopt, type(DType::bf16, {32})}, {{"activation", "silu"}})),
      "in0: f32; in1: f32; x0: $4 bf16 column; s0 = add(in1, x0); s1 = silu(in0); s2 = mul(s1, s0); y0: bf16 = s2");
}

TEST(TileProgram, OfQuantizedProducts) {
  const TensorType a = type(DType::i8, {4, 256}), b = type(DType::i8, {32, 256}), f = type(DType::f32, {});
  EXPECT_EQ(epilogue_text(problem(
                OpKind::scaled_mm,
                {a, b, type(DType::f32, {4}), type(DType::f32, {32}), type(DType::i32, {32}), type(DType::i32, {4}), y},
                {{"out_dtype", "bf16"}})),
            "in0: i32; in1: i32; x0: $5 i32 row; x1: $4 i32 column; x2: $3 f32 column; x3: $2 f32 row; x4: $6 bf16 "
            "element; s0 = mul_i(x0, in1); "
            "s1 = sub_i(in0, s0); s2 = add_i(s1, x1); s3 = cast(s2); s4 = mul(x2, s3); s5 = mul(x3, s4); s6 = add(s5, "
            "x4); y0: bf16 = s6");
  EXPECT_EQ(epilogue_text(problem(OpKind::scaled_mm, {a, b, f, f, {}, {}, {}, f}, {{"out_dtype", "i8"}})),
            "in0: i32; x0: $3 f32 scalar; x1: $2 f32 scalar; x2: $7 f32 scalar; s0 = cast(in0); s1 = mul(x0, s0); s2 = "
            "mul(x1, s1); s3 = div(s2, x2); "
            "y0: i8 = s3");
  // Sums whose scales cover blocks of the reduction were scaled on the way.
  EXPECT_EQ(epilogue_text(problem(OpKind::scaled_mm, {a, b, type(DType::f32, {4, 2}), type(DType::f32, {1, 2})},
                                  {{"out_dtype", "f16"}})),
            "in0: f32; y0: f16 = in0");
}

TEST(TileProgram, OfWhatFollowsAProduct) {
  const Problem product = problem(OpKind::linear, {x, w});
  const Problem scaled = problem(OpKind::mul, {y, type(DType::bf16, {})}), sum = problem(OpKind::add, {y, y});
  const std::vector<RegionNode> residual{{scaled, {RegionInput::inside(0, 0, {}), RegionInput::outside(0)}},
                                         {sum, {RegionInput::outside(0), RegionInput::inside(1, 0, {})}}};
  EXPECT_EQ(epilogue_text(followed(product, residual, Rounding::fast)),
            "in0: f32; x0: $3 bf16 scalar; x1: $4 bf16 element; s0 = mul(in0, x0); s1 = add(x1, s0); y0: bf16 = s1");
  EXPECT_EQ(epilogue_text(followed(product, residual, Rounding::strict)),
            "in0: f32; x0: $3 bf16 scalar; x1: $4 bf16 element; s0 = cast(in0) as bf16; s1 = mul(s0, x0); s2 = "
            "cast(s1) as bf16; s3 = add(x1, s2); "
            "y0: bf16 = s3");
  const std::vector<RegionNode> norm{
      {problem(OpKind::rms_norm, {y, std::nullopt}), {RegionInput::inside(0, 0, {}), {}}}};
  EXPECT_EQ(epilogue_text(followed(product, norm, Rounding::strict)),
            "declined: rms_norm after linear: only elementwise operators can follow");
}

TEST(TileProgram, Extents) {
  const auto extent = [](const Dims& operand) { return extent_of(operand, {2, 3, 8}); };
  EXPECT_EQ(extent({2, 3, 8}), TileProgram::Extent::element);
  EXPECT_EQ(extent({1, 1}), TileProgram::Extent::scalar);
  EXPECT_EQ(extent({1, 8}), TileProgram::Extent::column);
  EXPECT_EQ(extent({2, 3, 1}), TileProgram::Extent::row);
  EXPECT_EQ(extent({3, 8}), std::nullopt);
  EXPECT_EQ(extent({2, 1, 8}), std::nullopt);
}

}  // namespace
}  // namespace cermet
