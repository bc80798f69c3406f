// An example of an epilogue: every product of the CPU, scaled and added to a residual where its sums are stored. No
// kernel knows of it.
#include <gtest/gtest.h>

#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

using Value = RegionBuilder::Value;

/// residual + scale * product. `constant`: the product's weights, as bits.
void expect_scaled_residual(RegionBuilder b, const Value& product, std::vector<Fill> fills, std::uint64_t constant) {
  const Value scaled = b.add(OpKind::mul, {product, b.operand({product.type.dtype, {}})});
  b.result(b.add(OpKind::add, {b.operand(product.type), scaled}));
  b.anchor(product);
  Region region = b.build();
  region.nodes[0].problem.constant_inputs = constant;
  fills.insert(fills.end(), {constant == 0 ? ::cermet::constant(0.75) : ::cermet::constant(-1.5), normal()});
  expect_region_conforms(region, fills, 1);
}

TEST(ScaledResidual, OfEveryProduct) {
  for (const DType t : {DType::f32, DType::bf16, DType::f16})
    for (const Rounding rounding : {Rounding::strict, Rounding::fast})
      for (const std::int64_t rows : {1, 3, 29}) {
        const TensorType x{t, {rows, 96}}, w{t, {70, 96}};
        RegionBuilder linear(rounding), dual(rounding), matmul(rounding), grouped(rounding);
        const Value p = linear.add(OpKind::linear, {linear.operand(x), linear.operand(w), linear.operand({t, {70}})});
        expect_scaled_residual(linear, p, {normal(), normal(0.1), normal()}, 2);
        const Value d = dual.add(OpKind::dual_linear, {dual.operand(x), dual.operand(w), dual.operand(w)});
        expect_scaled_residual(dual, d, {normal(), normal(0.1), normal(0.1)}, 6);
        const Value m = matmul.add(OpKind::matmul, {matmul.operand(x), matmul.operand({t, {96, 70}})});
        expect_scaled_residual(matmul, m, {normal(), normal(0.1)}, 0);
        const Value offsets = grouped.operand({DType::i32, {3}});
        const Value g =
            grouped.add(OpKind::grouped_linear, {grouped.operand(x), grouped.operand({t, {2, 70, 96}}), offsets});
        expect_scaled_residual(
            grouped, g, {values({0, static_cast<double>(rows / 2), static_cast<double>(rows)}), normal(), normal(0.1)},
            2);
      }
}

TEST(ScaledResidual, OfQuantizedProducts) {
  for (const DType t : {DType::i8, DType::f8_e4m3})
    for (const Rounding rounding : {Rounding::strict, Rounding::fast})
      for (const std::int64_t rows : {1, 3, 29}) {
        const Fill whole = t == DType::i8 ? integers(-127, 127) : normal();
        RegionBuilder b(rounding);
        const Value x = b.operand({t, {rows, 96}}), w = b.operand({t, {70, 96}}),
                    left = b.operand({DType::f32, {rows}}), right = b.operand({DType::f32, {70}});
        const Value product = b.add(OpKind::scaled_mm, {x, w, left, right}, {{"out_dtype", "bf16"}});
        const double unit = t == DType::i8 ? 0.001 : 0.1;
        expect_scaled_residual(b, product, {whole, whole, uniform(unit, 2 * unit), uniform(0.01, 0.02)}, 2);
      }
}

}  // namespace
}  // namespace cermet
