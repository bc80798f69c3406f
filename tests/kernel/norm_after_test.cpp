// A norm after a product, in the rows that the product has stored: the same bits as kernels one after another.
#include <gtest/gtest.h>

#include "tests/kernel/type.hpp"
#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

using Value = RegionBuilder::Value;

/// y = layer_norm(x * w' + bias + residual, ...)
struct Block {
  RegionBuilder b{Rounding::strict};
  Value product, sum, normed;

  Block(DType dtype, const Dims& rows, bool has_weight, OpKind norm = OpKind::layer_norm) {
    Dims narrow = rows, wide = rows;
    narrow.emplace_back(48), wide.emplace_back(96);
    const TensorType vector = type(dtype, {96});
    product =
        b.add(OpKind::linear, {b.operand(type(dtype, narrow)), b.operand(type(dtype, {96, 48})), b.operand(vector)});
    sum = b.add(OpKind::add, {b.operand(type(dtype, wide)), product});
    std::vector<Value> operands{sum};
    if (has_weight) operands.push_back(b.operand(vector));
    if (has_weight && norm == OpKind::layer_norm) operands.push_back(b.operand(vector));
    normed = b.add(norm, operands);
  }
  Region region() const {
    RegionBuilder copy = b;
    copy.anchor(product);
    Region region = copy.build();
    region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs = 2;
    return region;
  }
};

std::string reason(const Region& region) {
  for (const Kernel* kernel : cpu::kernels_of(OpKind::linear))
    if (kernel->name == "gemm.linear.packed") return kernel->declines(region).value_or("taken");
  return {};
}

TEST(NormAfter, BehindAResidual) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const Dims& rows : {Dims{1}, {33}, {2, 7}, {1, 400}}) {
      Block built(dtype, rows, true);
      built.b.result(built.normed);
      EXPECT_EQ(reason(built.region()), "taken");
      expect_region_conforms(built.region(), {normal(), normal(0.1), normal(), normal(), normal(), normal()}, 1);
    }
}

TEST(NormAfter, WithoutItsOwnOperands) {
  Block built(DType::f32, {30}, false);
  built.b.result(built.normed);
  EXPECT_EQ(reason(built.region()), "taken");
  expect_region_conforms(built.region(), {normal(), normal(0.1), normal(), normal()}, 1);
}

TEST(NormAfter, BehindANormBeforeTheProduct) {
  RegionBuilder b(Rounding::strict);
  const TensorType vector = type(DType::f32, {48});
  const Value before = b.add(OpKind::layer_norm, {b.operand(type(DType::f32, {150, 48})), b.operand(vector)});
  const Value product = b.add(OpKind::linear, {before, b.operand(type(DType::f32, {48, 48}))});
  b.result(b.add(OpKind::layer_norm, {product, b.operand(vector), b.operand(vector)}));
  b.result(before);
  b.anchor(product);
  Region region = b.build();
  region.nodes[1].problem.constant_inputs = 2;
  EXPECT_EQ(reason(region), "taken");
  expect_region_conforms(region, {normal(), normal(), normal(0.1), normal(), normal()}, 1);
}

TEST(NormAfter, Declines) {
  Block leaves(DType::f32, {30}, true);
  leaves.b.result(leaves.normed);
  leaves.b.result(leaves.sum);
  EXPECT_EQ(reason(leaves.region()), "layer_norm after linear: what it reads leaves, too");
  Block other(DType::f32, {30}, true, OpKind::rms_norm);
  other.b.result(other.normed);
  EXPECT_EQ(reason(other.region()), "rms_norm after linear: only elementwise operators can follow");
}

}  // namespace
}  // namespace cermet
