// An activation behind a normalization of channels: one pass gives what the operators give one after another.
#include <gtest/gtest.h>

#include "tests/kernel/type.hpp"
#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

using Value = RegionBuilder::Value;

TEST(GroupNormRegion, Activates) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const OpKind op : {OpKind::group_norm, OpKind::instance_norm})
      for (const OpKind activation : {OpKind::silu, OpKind::relu}) {
        RegionBuilder b(Rounding::strict);
        const TensorType vector = type(dtype, {6});
        const Attributes groups = op == OpKind::group_norm ? Attributes{{"groups", std::int64_t{3}}} : Attributes();
        const Value normed = b.add(op, {b.operand(type(dtype, {2, 6, 5, 17})), b.operand(vector), b.operand(vector)}, groups);
        b.result(b.add(activation, {normed}));
        b.anchor(normed);
        expect_region_conforms(b.build(), {normal(1, 2), normal(), normal()}, 1);
      }
}

std::string reason_beside_norm(const Region& region) { return cpu::kernels_of(OpKind::group_norm)[0]->declines(region).value_or("taken"); }

TEST(GroupNormRegion, Declines) {
  const TensorType t = type(DType::f32, {2, 6, 5});
  const auto normed = [&](RegionBuilder& b) { return b.add(OpKind::group_norm, {b.operand(t)}, {{"groups", std::int64_t{3}}}); };
  RegionBuilder sum;
  const Value summand = normed(sum);
  sum.result(sum.add(OpKind::add, {summand, sum.operand(t)}));
  sum.anchor(summand);
  EXPECT_EQ(reason_beside_norm(sum.build()), "add is no activation");
  RegionBuilder read;
  const Value kept = normed(read);
  read.result(read.add(OpKind::relu, {kept}));
  read.result(kept);
  read.anchor(kept);
  EXPECT_EQ(reason_beside_norm(read.build()), "others read what is normalized, too");
  RegionBuilder chain;
  const Value first = normed(chain);
  chain.result(chain.add(OpKind::neg, {chain.add(OpKind::relu, {first})}));
  chain.anchor(first);
  EXPECT_EQ(reason_beside_norm(chain.build()), "one activation at most follows the normalization");
}

}  // namespace
}  // namespace cermet
