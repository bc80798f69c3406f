// Chains of operators that only move elements: one copy, with the bits of the operators one after another.
#include <gtest/gtest.h>

#include "kernel/cpu/movement/piece_map.hpp"
#include "tests/kernel/type.hpp"
#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

using Value = RegionBuilder::Value;

Value cut(RegionBuilder& b, const Value& x, std::int64_t axis, std::int64_t start, std::int64_t end,
          std::int64_t step = 1) {
  return b.add(OpKind::slice, {x},
               {{"axes", Ints{axis}}, {"starts", Ints{start}}, {"ends", Ints{end}}, {"steps", Ints{step}}});
}

Value rolled_axis(RegionBuilder& b, const Value& x, std::int64_t axis, std::int64_t by) {
  const Value front = cut(b, x, axis, by, 1000), back = cut(b, x, axis, 0, by);
  return b.add(OpKind::concat, {front, back}, {{"axis", axis}});
}

TEST(PieceMap, Rolls) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i8}) {
    RegionBuilder b;
    const Value x = b.operand(type(dtype, {2, 9, 7, 64}));
    const Value windows =
        b.add(OpKind::reshape, {rolled_axis(b, rolled_axis(b, x, 1, 3), 2, -2)}, {{"shape", Ints{2, 3, 3, 7, 64}}});
    b.result(b.add(OpKind::transpose, {windows}, {{"permutation", Ints{0, 1, 3, 2, 4}}}));
    expect_region_conforms(b.build(), {integers(-127, 127)}, 1);
  }
}

TEST(PieceMap, JoinsEverySecondPixel) {
  RegionBuilder b;
  const Value x = b.operand(type(DType::f32, {1, 6, 8, 24}));
  std::vector<Value> quarters;
  for (const std::int64_t row : {0, 1})
    for (const std::int64_t column : {0, 1}) quarters.push_back(cut(b, cut(b, x, 1, row, 6, 2), 2, column, 8, 2));
  b.result(b.add(OpKind::concat, quarters, {{"axis", std::int64_t{3}}}));
  expect_region_conforms(b.build(), {normal()}, 1);
}

TEST(PieceMap, JoinsOperandsThatRepeat) {
  RegionBuilder b;
  const Value first = b.add(OpKind::expand, {b.operand(type(DType::f32, {1, 1, 32}))}, {{"shape", Ints{3, 1, 32}}});
  const Value rest = cut(b, b.operand(type(DType::f32, {3, 6, 32})), 1, 2, 6);
  b.result(b.add(OpKind::concat, {first, rest}, {{"axis", std::int64_t{1}}}));
  expect_region_conforms(b.build(), {normal(), normal()}, 1);
}

TEST(PieceMap, CutsRowsWhereRunsStayTogether) {
  RegionBuilder b;
  const Value piece = cut(b, b.operand(type(DType::f32, {5, 96})), 1, 32, 80);
  b.result(b.add(OpKind::concat, {piece, b.operand(type(DType::f32, {5, 16}))}, {{"axis", std::int64_t{1}}}));
  expect_region_conforms(b.build(), {normal(), normal()}, 1);
}

TEST(PieceMap, ReadsAndWritesStridedRows) {
  RegionBuilder b;
  const Value x = b.operand(type(DType::f32, {6, 32}));
  b.result(cut(b,
               b.add(OpKind::transpose, {b.add(OpKind::reshape, {x}, {{"shape", Ints{3, 2, 32}}})},
                     {{"permutation", Ints{1, 0, 2}}}),
               1, 1, 3));
  const Region region = b.build();
  std::vector<float> from(6 * 40), to(2 * 2 * 50, -1);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  const TensorView in(from.data(), DType::f32, {6, 32}, {40, 1}), out(to.data(), DType::f32, {2, 2, 32}, {100, 50, 1});
  ThreadPool pool(2);
  for (const Kernel* kernel : cpu::kernels_of(OpKind::slice)) {
    ASSERT_FALSE(kernel->declines(region));
    kernel->bind(region)({.inputs = {&in, 1}, .outputs = {&out, 1}, .pool = &pool});
  }
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 2; ++j)
      for (std::int64_t c = 0; c < 50; ++c) {
        const auto found = to[static_cast<std::size_t>(i * 100 + j * 50 + c)];
        EXPECT_EQ(found, c < 32 ? static_cast<float>(((j + 1) * 2 + i) * 40 + c) : -1);
      }
}

TEST(PieceMap, Declines) {
  const auto reason = [](const Region& region) {
    return cpu::PieceMap::declines(region, region.nodes.size(), region.results[0]).value_or("taken");
  };
  RegionBuilder negated;
  negated.result(cut(negated, negated.add(OpKind::neg, {negated.operand(type(DType::f32, {5, 96}))}), 0, 1, 3));
  EXPECT_EQ(reason(negated.build()), "neg does more than move elements");
  RegionBuilder open;
  open.result(cut(
      open,
      open.add(OpKind::reshape, {open.operand(type(DType::f32, {Dim(Symbol("N")), 96}))}, {{"shape", Ints{0, 3, 32}}}),
      1, 1, 3));
  EXPECT_EQ(reason(open.build()), "the size of what reshape moves is open");
  RegionBuilder narrow;
  narrow.result(cut(narrow, cut(narrow, narrow.operand(type(DType::f32, {5, 96})), 1, 1, 65), 0, 1, 3));
  EXPECT_EQ(reason(narrow.build()), "runs of 4 bytes stay together, and 64 are worth a copy of their own");
}

}  // namespace
}  // namespace cermet
