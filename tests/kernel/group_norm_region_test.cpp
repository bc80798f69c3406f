// An activation after a normalization of channels: one pass gives what the operators give one after another.
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
        const Value normed =
            b.add(op, {b.operand(type(dtype, {2, 6, 5, 17})), b.operand(vector), b.operand(vector)}, groups);
        b.result(b.add(activation, {normed}));
        b.anchor(normed);
        expect_region_conforms(b.build(), {normal(1, 2), normal(), normal()}, 1);
      }
}

std::string reason_beside_norm(const Region& region) {
  return cpu::kernels_of(OpKind::group_norm)[0]->declines(region).value_or("taken");
}

TEST(GroupNormRegion, Declines) {
  const TensorType t = type(DType::f32, {2, 6, 5});
  const auto normed = [&](RegionBuilder& b) {
    return b.add(OpKind::group_norm, {b.operand(t)}, {{"groups", std::int64_t{3}}});
  };
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

/// [samples, 8, 5, 9] with its channels last, moved to the front.
Value to_front(RegionBuilder& b, const Value& image) {
  return b.add(OpKind::transpose, {image}, {{"permutation", Ints{0, 3, 1, 2}}});
}
Value to_back(RegionBuilder& b, const Value& image) {
  return b.add(OpKind::transpose, {image}, {{"permutation", Ints{0, 2, 3, 1}}});
}

TEST(GroupNormRegion, ChannelsLastOnEitherSide) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const DType out : {DType::f32, DType::bf16})
      for (const int sides : {1, 2, 3})
        for (const bool activates : {false, true}) {
          RegionBuilder b(Rounding::strict);
          const bool from_last = (sides & 1) != 0, to_last = (sides & 2) != 0;
          const Value image = b.operand(type(dtype, from_last ? Dims{2, 5, 9, 8} : Dims{2, 8, 5, 9})),
                      x = from_last ? to_front(b, image) : image;
          const TensorType vector = type(DType::f32, {8});
          const Value normed = b.add(OpKind::group_norm, {x, b.operand(vector), b.operand(vector)},
                                     {{"groups", std::int64_t{4}}, {"out_dtype", std::string(name_of(out))}});
          const Value y = activates ? b.add(OpKind::silu, {normed}) : normed;
          b.result(to_last ? to_back(b, y) : y);
          b.anchor(normed);
          expect_region_conforms(b.build(), {normal(1, 2), normal(), normal()}, 1);
        }
}

TEST(GroupNormRegion, VolumesAndLinesWithChannelsLast) {
  RegionBuilder line(Rounding::strict);
  const Value from =
      line.add(OpKind::transpose, {line.operand(type(DType::f32, {1, 70, 6}))}, {{"permutation", Ints{0, 2, 1}}});
  const Value normed = line.add(OpKind::instance_norm, {from});
  line.result(line.add(OpKind::transpose, {normed}, {{"permutation", Ints{0, 2, 1}}}));
  line.anchor(normed);
  expect_region_conforms(line.build(), {normal(1, 2)}, 1);
  RegionBuilder volume(Rounding::strict);
  const Value front = volume.add(OpKind::transpose, {volume.operand(type(DType::f32, {3, 2, 3, 4, 6}))},
                                 {{"permutation", Ints{0, 4, 1, 2, 3}}});
  const Value grouped = volume.add(OpKind::group_norm, {front}, {{"groups", std::int64_t{2}}});
  volume.result(volume.add(OpKind::transpose, {grouped}, {{"permutation", Ints{0, 2, 3, 4, 1}}}));
  volume.anchor(grouped);
  expect_region_conforms(volume.build(), {normal(1, 2)}, 1);
}

/// Groups of four channels, of which one takes channels of both parts.
TEST(GroupNormRegion, JoinsChannels) {
  for (const DType dtype : {DType::f32, DType::f16})
    for (const bool leaves : {false, true}) {
      RegionBuilder b(Rounding::strict);
      const Value a = b.operand(type(dtype, {2, 5, 9, 6})), c = b.operand(type(dtype, {2, 5, 9, 9})),
                  d = b.operand(type(dtype, {2, 5, 9, 1}));
      const Value joined = b.add(OpKind::concat, {a, c, d}, {{"axis", std::int64_t{-1}}});
      const Value normed =
          b.add(OpKind::group_norm, {to_front(b, joined), b.operand(type(dtype, {16}))}, {{"groups", std::int64_t{4}}});
      const Value y = to_back(b, b.add(OpKind::silu, {normed}));
      if (leaves) b.result(joined);
      b.result(y);
      b.anchor(normed);
      expect_region_conforms(b.build(), {normal(1, 2), normal(), normal(), normal()}, 1);
    }
}

TEST(GroupNormRegion, DeclinesWhatMovesOtherwise) {
  const auto reason_of = [&](const Ints& before, const Ints& behind, bool leaves) {
    RegionBuilder b(Rounding::strict);
    const Value x = b.add(OpKind::transpose, {b.operand(type(DType::f32, {4, 4, 4, 4}))}, {{"permutation", before}});
    const Value normed = b.add(OpKind::group_norm, {x}, {{"groups", std::int64_t{2}}});
    if (leaves) b.result(x);
    b.result(b.add(OpKind::transpose, {normed}, {{"permutation", behind}}));
    b.anchor(normed);
    return reason_beside_norm(b.build());
  };
  const Ints front{0, 3, 1, 2}, back{0, 2, 3, 1};
  EXPECT_EQ(reason_of(front, back, false), "taken");
  EXPECT_EQ(reason_of(back, back, false),
            "transpose before group_norm: only channels that are moved to the front can precede");
  EXPECT_EQ(reason_of(front, front, false), "transpose is no activation");
  EXPECT_EQ(reason_of(front, back, true), "transpose before group_norm: others read it, too");
  RegionBuilder rows(Rounding::strict);
  const Value part = rows.operand(type(DType::f32, {2, 5, 9, 8}));
  const Value normed = rows.add(OpKind::group_norm,
                                {to_front(rows, rows.add(OpKind::concat, {part, part}, {{"axis", std::int64_t{1}}}))});
  rows.result(normed);
  EXPECT_EQ(reason_beside_norm(rows.build()),
            "transpose before group_norm: only a concat of channels comes before that");
}

}  // namespace
}  // namespace cermet
