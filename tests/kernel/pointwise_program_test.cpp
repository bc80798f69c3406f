// Regions of elementwise operators as lists of steps.
#include <gtest/gtest.h>

#include "kernel/tile_program.hpp"
#include "tests/support/region_builder.hpp"

namespace cermet {
namespace {

std::string region_text(const Region& region) {
  const TileProgramOrReason made = pointwise_program(region);
  return made.reason ? "declined: " + *made.reason : made.program.to_string();
}

TEST(PointwiseProgram, OperandsBroadcastAndEdgesRound) {
  for (const Rounding rounding : {Rounding::strict, Rounding::fast}) {
    RegionBuilder b(rounding);
    const auto x = b.operand({DType::bf16, {4, 8}}), scale = b.operand({DType::bf16, {8}}),
               row = b.operand({DType::f32, {4, 1}});
    const auto scaled = b.add(OpKind::mul, {x, scale});
    const auto wide = b.add(OpKind::cast, {scaled}, {{"out_dtype", "f32"}});
    b.result(b.add(OpKind::add, {wide, row}));
    b.result(b.add(OpKind::silu, {scaled}));
    EXPECT_EQ(region_text(b.build()), rounding == Rounding::strict
                                          ? "x0: $0 bf16 element; x1: $1 bf16 column; x2: $2 f32 row; s0 = mul(x0, "
                                            "x1); s1 = cast(s0) as bf16; s2 = add(s1, x2); "
                                            "s3 = silu(s1); y0: f32 = s2; y1: bf16 = s3"
                                          : "x0: $0 bf16 element; x1: $1 bf16 column; x2: $2 f32 row; s0 = mul(x0, "
                                            "x1); s1 = add(s0, x2); s2 = silu(s0); "
                                            "y0: f32 = s1; y1: bf16 = s2");
  }
}

TEST(PointwiseProgram, QuantizedValuesAreAlwaysRounded) {
  RegionBuilder b(Rounding::fast);
  const auto x = b.operand({DType::f32, {2, 8}}), step = b.operand({DType::f32, {}}),
             rows = b.operand({DType::f32, {2}});
  const auto q = b.add(OpKind::quantize, {x, step, {}});
  b.result(q);
  b.result(b.add(OpKind::dequantize, {q, rows, {}}, {{"granularity", "token"}, {"out_dtype", "f16"}}));
  EXPECT_EQ(region_text(b.build()),
            "x0: $0 f32 element; x1: $1 f32 scalar; x2: $2 f32 row; s0 = div(x0, x1); s1 = cast(s0) as i8; s2 = "
            "mul(s1, x2); y0: i8 = s0; y1: f16 = s2");
}

TEST(PointwiseProgram, ZeroPointsAreAddedAfterRounding) {
  RegionBuilder b;
  const auto q = b.operand({DType::u8, {2, 8}}), step = b.operand({DType::f32, {2, 1}}),
             zero = b.operand({DType::u8, {2, 1}});
  const auto scale = b.operand({DType::f32, {}}), point = b.operand({DType::i8, {}});
  const auto y = b.add(OpKind::dequantize, {q, step, zero}, {{"granularity", "broadcast"}});
  b.result(b.add(OpKind::quantize, {b.add(OpKind::relu, {y}), scale, {}, point}));
  EXPECT_EQ(region_text(b.build()),
            "x0: $0 u8 element; x1: $2 u8 row; x2: $1 f32 row; x3: $3 f32 scalar; x4: $4 i8 scalar; s0 = sub(x0, x1); "
            "s1 = mul(s0, x2); s2 = relu(s1); "
            "s3 = div(s2, x3); s4 = round(s3); s5 = add(s4, x4); y0: i8 = s5");
}

TEST(PointwiseProgram, Declines) {
  for (const DType type : {DType::i64, DType::u8, DType::f64}) {
    RegionBuilder b;
    const auto x = b.operand({type, {8}});
    b.result(b.add(OpKind::neg, {b.add(OpKind::abs, {x})}));
    EXPECT_EQ(region_text(b.build()),
              fmt::format("declined: abs: its operands are {}, which steps do not compute in", name_of(type)));
  }
  for (const Attributes& attributes :
       {Attributes{{"out_dtype", "u8"}}, Attributes{{"out_dtype", "f8_e4m3"}, {"saturate", false}}}) {
    RegionBuilder b;
    const auto x = b.operand({DType::f32, {8}}), step = b.operand({DType::f32, {}});
    b.result(b.add(OpKind::quantize, {b.add(OpKind::abs, {x}), step}, attributes));
    EXPECT_EQ(region_text(b.build()), attributes.find("saturate") ? "declined: quantize: it does not saturate"
                                                                  : "declined: quantize: its result is u8");
  }
  {
    RegionBuilder b;
    const auto x = b.operand({DType::f32, {4, 8}});
    b.result(b.add(OpKind::neg, {b.add(OpKind::softmax, {x})}));
    EXPECT_EQ(region_text(b.build()), "declined: softmax: no elementwise operator");
  }
  {
    RegionBuilder b;
    const auto x = b.operand({DType::f32, {8}}), y = b.operand({DType::f32, {4, 8}});
    const auto square = b.add(OpKind::square, {x});
    b.result(b.add(OpKind::add, {square, y}));
    b.result(square);
    EXPECT_EQ(region_text(b.build()), "declined: square: its result has other dimensions than others of the region");
  }
  {
    RegionBuilder b;
    const auto x = b.operand({DType::i32, {8}});
    b.result(b.add(OpKind::exp, {b.add(OpKind::cast, {x}, {{"out_dtype", "bf16"}})}));
    EXPECT_EQ(region_text(b.build()), "declined: cast: from i32 to bf16 is no rounding of a float32");
  }
}

}  // namespace
}  // namespace cermet
