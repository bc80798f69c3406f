// Matrix products that read their operands through reshapes and transpositions, and operands that repeat among the rows
// of their results.
#include <gtest/gtest.h>

#include "tests/kernel/type.hpp"
#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

using Value = RegionBuilder::Value;

/// Tokens of `heads` heads beside each other, as [batch, heads, tokens, size], or with the last two exchanged.
Value heads_of(RegionBuilder& b, const Value& tokens, std::int64_t heads, bool exchanged = false) {
  const Dims& dims = tokens.type.dims;
  const Value apart = b.add(OpKind::reshape, {tokens}, {{"shape", Ints{0, 0, heads, dims.back().constant() / heads}}});
  return b.add(OpKind::transpose, {apart}, {{"permutation", exchanged ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3}}});
}

Region product_of(RegionBuilder& b, const Value& product) {
  b.result(product);
  b.anchor(product);
  return b.build();
}

std::string reason_of(const Region& region) {
  for (const Kernel* kernel : cpu::kernels_of(OpKind::matmul))
    if (kernel->name == "gemm.matmul.repacked") return kernel->declines(region).value_or("taken");
  return {};
}

TEST(StridedOperands, Heads) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const std::int64_t tokens : {1, 7, 70}) {
      RegionBuilder scores, values, left;
      const TensorType t = type(dtype, {2, tokens, 48}), square = type(dtype, {2, 3, tokens, tokens});
      const Value q = heads_of(scores, scores.operand(t), 3);
      expect_region_conforms(
          product_of(scores, scores.add(OpKind::matmul, {q, heads_of(scores, scores.operand(t), 3, true)})),
          {normal(), normal()}, 1);
      const Value p = values.operand(square);
      expect_region_conforms(
          product_of(values, values.add(OpKind::matmul, {p, heads_of(values, values.operand(t), 3)})),
          {normal(), normal()}, 1);
      const Value rows = heads_of(left, left.operand(t), 3, true);
      expect_region_conforms(
          product_of(left, left.add(OpKind::matmul, {rows, left.operand(square)}, {{"transpose_b", true}})),
          {normal(), normal()}, 1);
    }
}

TEST(StridedOperands, OfSumsThatAreColumns) {
  RegionBuilder b;
  const Value x = b.operand(type(DType::f32, {2, 40, 3, 5})), y = b.operand(type(DType::f32, {3, 40, 6}));
  const Value rows = b.add(OpKind::transpose, {x}, {{"permutation", Ints{0, 2, 1, 3}}}),
              columns = b.add(OpKind::transpose, {y}, {{"permutation", Ints{0, 2, 1}}});
  const Value product = b.add(OpKind::matmul, {rows, columns}, {{"transpose_a", true}, {"transpose_b", true}});
  expect_region_conforms(product_of(b, product), {normal(), normal()}, 1);
}

/// A third of a projection's columns, as a split leaves them.
TEST(StridedOperands, OfPartsOfRows) {
  RegionBuilder b;
  const TensorType t = type(DType::f32, {2, 9, 16});
  const Value q = heads_of(b, b.operand(t), 2);
  const Region region = product_of(b, b.add(OpKind::matmul, {q, heads_of(b, b.operand(t), 2, true)}));
  const OwnedTensor whole =
      std::move(filled_operands(Region(make_problem(definition(OpKind::silu), {type(DType::f32, {2, 9, 48})}, {})),
                                std::mt19937_64(5), [](std::size_t) { return normal(); })
                    .front());
  std::vector<OwnedTensor> dense;
  std::vector<TensorView> parts;
  for (std::int64_t part = 0; part < 2; ++part) {
    parts.emplace_back(whole.view.as<float>() + part * 16, DType::f32, Shape{2, 9, 16}, whole.view.strides);
    dense.emplace_back(DType::f32, Shape{2, 9, 16});
    for (std::int64_t row = 0; row < 18; ++row)
      std::copy_n(parts.back().as<float>() + row * 48, 16, dense.back().view.as<float>() + row * 16);
  }
  ThreadPool pool(2);
  for (const Kernel* kernel : cpu::kernels_of(OpKind::matmul)) {
    if (!kernel->fuses || kernel->declines(region)) continue;
    const std::vector<OwnedTensor> expected = make_results(region), found = make_results(region);
    run_one(region, *kernel, pool, views_of(dense), views_of(expected));
    run_one(region, *kernel, pool, parts, views_of(found));
    EXPECT_TRUE(same_bits(expected[0].view, found[0].view)) << kernel->name;
  }
}

TEST(StridedOperands, WhatLiesApartIsDeclined) {
  const auto reason = [](OpKind op, const Attributes& attributes, Dims dims) {
    RegionBuilder b;
    const Value moved = b.add(op, {b.operand(type(DType::f32, std::move(dims)))}, attributes);
    return reason_of(product_of(b, b.add(OpKind::matmul, {b.operand(type(DType::f32, {4, 6, 8})), moved})));
  };
  EXPECT_EQ(reason(OpKind::transpose, {{"permutation", Ints{1, 2, 0}}}, {3, 4, 8}), "taken");
  EXPECT_EQ(reason(OpKind::transpose, {{"permutation", Ints{2, 0, 1}}}, {8, 3, 4}),
            "transpose before matmul: neither rows nor columns lie together");
  EXPECT_EQ(reason(OpKind::reshape, {{"shape", Ints{4, 8, 3}}}, {2, 16, 3}),
            "reshape before matmul: a reshape joins dimensions");
}

/// A mask for all heads, and one for all of a batch's rows.
TEST(StridedOperands, OperandsThatRepeatAmongResults) {
  for (const Dims& dims : {Dims{1, 1, 7, 9}, Dims{2, 1, 1, 9}, Dims{7, 9}, Dims{2, 1, 7, 1}}) {
    RegionBuilder b;
    const Value product =
        b.add(OpKind::matmul, {b.operand(type(DType::f32, {2, 3, 7, 33})), b.operand(type(DType::f32, {2, 3, 33, 9}))});
    b.result(b.add(OpKind::add, {product, b.operand(type(DType::f32, dims))}));
    b.anchor(product);
    expect_region_conforms(b.build(), {normal(), normal(), normal()}, 1);
  }
}

}  // namespace
}  // namespace cermet
