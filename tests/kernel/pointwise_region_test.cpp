// Regions of elementwise operators on the CPU: one pass gives what the operators give one after another.
#include <gtest/gtest.h>

#include <limits>

#include "tests/kernel/type.hpp"
#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

using Value = RegionBuilder::Value;

TEST(PointwiseRegion, ChainsWithResultsOnTheWay) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const Rounding rounding : {Rounding::strict, Rounding::fast}) {
      RegionBuilder b(rounding);
      const TensorType t = type(dtype, {5, 700});
      const Value gate = b.add(OpKind::silu, {b.operand(t)}), product = b.add(OpKind::mul, {gate, b.operand(t)});
      b.result(b.add(OpKind::add, {b.operand(type(dtype, {700})), product}));
      b.result(product);
      expect_region_conforms(b.build(), {normal(), normal(), normal()}, 1);
    }
}

/// A mask of tokens as exporters write it: 64-bit integers that become truth, then numbers to add to scores.
TEST(PointwiseRegion, MaskOfTokens) {
  for (const DType tokens : {DType::i64, DType::i32, DType::boolean})
    for (const DType dtype : {DType::f32, DType::f16})
      for (const std::int64_t batch : {1, 3, 40}) {  // 40: as many as tokens
        RegionBuilder b(Rounding::strict);
        const Value truth = b.add(OpKind::cast, {b.operand(type(tokens, {batch, 40}))}, {{"out_dtype", "bool"}});
        const Value seen = b.add(OpKind::reshape, {truth}, {{"shape", Ints{batch, 1, 1, 40}}});
        const Value both = b.add(OpKind::logical_and, {b.operand(type(DType::boolean, {1, 1, 40, 40})), seen});
        b.result(b.add(OpKind::where, {both, b.operand(type(dtype, {})), b.operand(type(dtype, {1}))}));
        const Fill ids = tokens == DType::boolean ? integers(0, 1) : values({0, 1, 4294967296.0, 0, -3});
        expect_region_conforms(b.build(), {ids, integers(0, 1), constant(0), constant(-INFINITY)}, 1);
      }
}

TEST(PointwiseRegion, OneOfTwoValuesKeepsItsBits) {
  RegionBuilder b(Rounding::strict);
  const TensorType t = type(DType::f32, {5, 33});
  const Value less = b.add(OpKind::less, {b.operand(t), b.operand(t)});
  const Value one = b.add(OpKind::where, {less, b.operand(t), b.operand(type(DType::f32, {33}))});
  b.result(b.add(OpKind::neg, {one}));
  expect_region_conforms(b.build(),
                         {normal(), normal(), values({NAN, -0.0, INFINITY, 1}), values({2, -0.0, -INFINITY})}, 1);
}

TEST(PointwiseRegion, RowsByIndex) {
  for (const DType dtype : {DType::f32, DType::f16})
    for (const Dims& index : {Dims{3, 5}, Dims{5}, Dims{3, 1}, Dims{1}}) {
      RegionBuilder b(Rounding::strict);
      const Value rows = b.add(OpKind::gather, {b.operand(type(dtype, {9, 700})), b.operand(type(DType::i64, index))},
                               {{"axis", std::int64_t{0}}});
      const Value more = b.add(OpKind::gather, {b.operand(type(dtype, {4, 700})), b.operand(type(DType::i32, {3, 5}))},
                               {{"axis", std::int64_t{0}}});
      b.result(b.add(OpKind::add, {rows, more}));
      expect_region_conforms(b.build(), {normal(), integers(-9, 8), normal(), integers(0, 3)}, 1);
    }
}

TEST(PointwiseRegion, OneRowWhereAllAreDense) {
  RegionBuilder b(Rounding::strict);
  const TensorType t = type(DType::bf16, {3, 5, 129});
  const Value scaled = b.add(OpKind::mul, {b.operand(t), b.operand(type(DType::bf16, {1, 1}))});
  b.result(b.add(OpKind::max, {scaled, b.operand(t)}));
  expect_region_conforms(b.build(), {normal(), constant(0.3), normal()}, 1);
}

TEST(PointwiseRegion, BroadcastsAlongAnyDimension) {
  RegionBuilder b(Rounding::strict);
  const Value x = b.operand(type(DType::f32, {3, 1, 5, 11})), rows = b.operand(type(DType::f32, {5, 1}));
  const Value sum = b.add(OpKind::add, {x, b.operand(type(DType::f32, {3, 7, 5, 11}))});
  const Value less = b.add(OpKind::sub, {sum, rows});
  b.result(b.add(OpKind::div, {less, b.operand(type(DType::f32, {7, 1, 11}))}));
  expect_region_conforms(b.build(), {normal(), normal(), normal(), uniform(1, 2)}, 1);
}

TEST(PointwiseRegion, BroadcastsAmongEqualDimensions) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const Dims& dims : {Dims{8, 8}, Dims{8, 8, 1}, Dims{8, 1}}) {
      RegionBuilder b(Rounding::strict);
      const Value sum = b.add(OpKind::add, {b.operand(type(dtype, {8, 8, 8})), b.operand(type(dtype, dims))});
      b.result(b.add(OpKind::relu, {sum}));
      expect_region_conforms(b.build(), {normal(), normal()}, 1);
    }
}

TEST(PointwiseRegion, IntegersAreDividedAndTakenApart) {
  RegionBuilder b(Rounding::strict);
  const TensorType t = type(DType::i32, {9, 33});
  const Value x = b.operand(t), y = b.operand(t);
  const Value rest = b.add(OpKind::mod, {x, y});
  b.result(b.add(OpKind::bitwise_xor, {b.add(OpKind::bitwise_not, {rest}), b.add(OpKind::fmod, {x, y})}));
  b.result(b.add(OpKind::prelu, {b.add(OpKind::div, {x, y}), b.add(OpKind::sign, {y})}));
  b.result(b.add(OpKind::pow, {x, rest}));
  expect_region_conforms(b.build(), {integers(-2000000000, 2000000000), integers(-3, 3)}, 1);
}

TEST(PointwiseRegion, QuantizedWithZeroPoints) {
  RegionBuilder b(Rounding::strict);
  const Value q = b.operand(type(DType::u8, {5, 70})), step = b.operand(type(DType::f32, {5, 1})),
              zero = b.operand(type(DType::u8, {5, 1}));
  const Value scale = b.operand(type(DType::f32, {})), point = b.operand(type(DType::i8, {}));
  const Value y = b.add(OpKind::dequantize, {q, step, zero}, {{"granularity", "broadcast"}});
  b.result(b.add(OpKind::quantize, {b.add(OpKind::relu, {y}), scale, {}, point}));
  expect_region_conforms(b.build(),
                         {integers(0, 255), uniform(0.1, 0.3), integers(100, 140), constant(0.125), constant(-3)}, 1);
}

/// Values that are quantized and dequantized at once: saturated, no numbers, and zeros of either sign.
TEST(PointwiseRegion, ValuesThatAreQuantizedAndDequantized) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Fill special = values({-0.0, 0.0, 0.05, -0.05, 0.15, 0.25, -12.85, 12.7, 1e30, -1e30, infinity, -infinity,
                               std::nan(""), 3e-45, -3e-45});
  for (const bool has_zero_point : {false, true})
    for (const bool sum : {false, true}) {
      RegionBuilder b(Rounding::strict);
      Value x = b.operand(type(DType::f32, {3, 5}));
      const Value scale = b.operand(type(DType::f32, {}));
      std::vector<Fill> fills{special, constant(0.1)};
      const auto operand = [&](const TensorType& t, Fill fill) {
        fills.push_back(std::move(fill));
        return b.operand(t);
      };
      if (sum) x = b.add(OpKind::add, {x, operand(type(DType::f32, {5}), constant(-0.0))});
      const Value point = has_zero_point ? operand(type(DType::i8, {}), constant(7)) : Value{};
      const Value q = b.add(OpKind::quantize, {x, scale, {}, point});
      b.result(b.add(OpKind::dequantize, {q, scale, point}, {{"granularity", "broadcast"}}));
      const Value stored = b.add(OpKind::quantize, {b.add(OpKind::neg, {x}), scale, {}, point});
      b.result(stored);
      expect_region_conforms(b.build(), fills, 1);
    }
}

TEST(PointwiseRegion, IntegersAndTruth) {
  RegionBuilder b(Rounding::strict);
  const TensorType t = type(DType::i32, {9, 33});
  const Value x = b.operand(t), product = b.add(OpKind::mul, {x, b.operand(t)});
  const Value sum = b.add(OpKind::abs, {b.add(OpKind::sub, {product, b.operand(type(DType::i32, {33}))})});
  b.result(sum);
  b.result(b.add(OpKind::cast, {sum}, {{"out_dtype", "f32"}}));
  const Fill whole = integers(-2000000000, 2000000000);
  expect_region_conforms(b.build(), {whole, whole, whole}, 1);
  RegionBuilder c(Rounding::strict);
  const TensorType f = type(DType::f32, {9, 33});
  const Value a = c.operand(f), other = c.operand(f), smaller = c.add(OpKind::less, {a, other});
  c.result(c.add(OpKind::logical_or, {smaller, c.add(OpKind::equal, {a, c.operand(f)})}));
  expect_region_conforms(c.build(), {integers(-3, 3), integers(-3, 3), integers(-3, 3)}, 1);
}

TEST(PointwiseRegion, QuantizedValues) {
  for (const std::string to : {"i8", "f8_e4m3", "f8_e5m2"}) {
    RegionBuilder b(Rounding::strict);
    const Value x = b.operand(type(DType::bf16, {6, 70})), scale = b.operand(type(DType::f32, {70}));
    const Value codes = b.add(OpKind::quantize, {b.add(OpKind::relu, {x}), scale}, {{"out_dtype", to}});
    b.result(b.add(OpKind::dequantize, {codes, b.operand(type(DType::f32, {6}))},
                   {{"granularity", "token"}, {"out_dtype", "bf16"}}));
    b.result(codes);
    expect_region_conforms(b.build(), {normal(3), uniform(0.02, 0.1), uniform(0.5, 1)}, 1);
  }
}

TEST(PointwiseRegion, IntegersThatAreQuantizedValues) {
  for (const DType dtype : {DType::i8, DType::i32})
    for (const DType offset : {DType::f32, DType::i32}) {
      RegionBuilder b(Rounding::strict);
      const Value q = b.operand(type(dtype, {6, 70})), scale = b.operand(type(DType::f32, {6}));
      b.result(b.add(OpKind::relu, {b.add(OpKind::dequantize, {q, scale, b.operand(type(offset, {6}))},
                                          {{"granularity", "token"}})}));
      expect_region_conforms(b.build(), {integers(-127, 127), uniform(0.01, 0.02), integers(-20, 20)}, 1);
    }
}

TEST(PointwiseRegion, Declines) {
  const auto reason = [](const Region& region) {
    return cpu::kernels_of(OpKind::add)[0]->declines(region).value_or("taken");
  };
  RegionBuilder many(Rounding::strict);
  Value sum = many.operand(type(DType::f32, {4, 8}));
  for (int i = 0; i < 24; ++i) sum = many.add(OpKind::add, {sum, many.operand(type(DType::f32, {}))});
  many.result(sum);
  EXPECT_EQ(reason(many.build()), "reads 25 tensors, at most 24 in one pass");
  RegionBuilder values(Rounding::strict);
  const Value x = values.operand(type(DType::f32, {4, 8}));
  std::vector<Value> held;
  for (const double alpha : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3})
    held.push_back(values.add(OpKind::leaky_relu, {x}, {{"alpha", alpha}}));
  sum = held.front();
  for (std::size_t i = 1; i < held.size(); ++i) sum = values.add(OpKind::add, {sum, held[i]});
  values.result(sum);
  EXPECT_EQ(reason(values.build()), "holds more than 12 values at once");
  RegionBuilder tokens(Rounding::strict);
  const Value q = tokens.operand(type(DType::i8, {6, 70}));
  const Value y =
      tokens.add(OpKind::dequantize, {q, tokens.operand(type(DType::f32, {6}))}, {{"granularity", "token"}});
  tokens.result(tokens.add(OpKind::add, {y, tokens.operand(type(DType::f32, {3, 6, 70}))}));
  EXPECT_EQ(reason(tokens.build()), "scales go with tokens, and the results have other rows");
}

}  // namespace
}  // namespace cermet
