// What comes before a product whose weights are not known beforehand: made first, with the bits of kernels one after another.
#include <gtest/gtest.h>

#include "tests/kernel/type.hpp"
#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

TEST(ChangingWeights, NodesBeforeTheProduct) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t rows : {1, 9, 130}) {
      RegionBuilder norm(Rounding::strict), gate(Rounding::strict), groups(Rounding::strict);
      const TensorType x = type(dtype, {rows, 70}), w = type(dtype, {40, 70});
      const auto normed = norm.add(OpKind::add_rms_norm, {norm.operand(x), norm.operand(x), norm.operand(type(dtype, {70}))});
      norm.result(norm.result_of(normed.node, 1));
      norm.result(norm.add(OpKind::linear, {normed, norm.operand(w)}));
      expect_region_conforms(norm.build(), {normal(), normal(), normal(), normal(0.1)}, 1);
      const auto gated = gate.add(OpKind::mul, {gate.add(OpKind::silu, {gate.operand(x)}), gate.operand(x)});
      gate.result(gate.add(OpKind::dual_linear, {gated, gate.operand(w), gate.operand(w)}));
      expect_region_conforms(gate.build(), {normal(), normal(), normal(0.1), normal(0.1)}, 1);
      const auto row = groups.add(OpKind::rms_norm, {groups.operand(x), groups.operand(type(dtype, {70}))});
      groups.result(groups.add(OpKind::grouped_linear, {row, groups.operand(type(dtype, {2, 40, 70})), groups.operand(type(DType::i32, {3}))}));
      expect_region_conforms(groups.build(), {normal(), normal(), normal(0.1), values({0, 1, static_cast<double>(rows)})}, 1);
    }
}

}  // namespace
}  // namespace cermet
