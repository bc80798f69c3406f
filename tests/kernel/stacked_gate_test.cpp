// Gates of stacked weights after quantized products and those of groups, and rows that are made before products in
// batches: the same bits as kernels one after another.
#include <gtest/gtest.h>

#include <cmath>

#include "kernel/forced.hpp"
#include "select/select.hpp"
#include "tests/kernel/type.hpp"
#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

using Value = RegionBuilder::Value;

struct StackedGate {
  RegionBuilder b;
  std::vector<Fill> fills;

  explicit StackedGate(Rounding rounding) : b(rounding) {}
  Value operand(const TensorType& t, const Fill& fill) {
    fills.push_back(fill);
    return b.operand(t);
  }
  void expect_conforms(const Value& product, int takers, double scale = 4, bool constant = true) {
    const Value gated = b.add(OpKind::silu_and_mul, {product});
    b.result(gated);
    b.anchor(product);
    Region region = b.build();
    if (constant) region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs = 2;
    expect_region_conforms(region, fills, takers, scale);
  }
};

TEST(StackedGate, OfExperts) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t rows : {3, 90})
      for (const Rounding rounding : {Rounding::strict, Rounding::fast}) {
        StackedGate c(rounding);
        const Value x = c.operand(type(dtype, {rows, 70}), normal()),
                    w = c.operand(type(dtype, {4, 192, 70}), normal(0.1));
        const Value offsets = c.operand(type(DType::i32, {5}),
                                        values({0, 2, 2, static_cast<double>(rows - 1), static_cast<double>(rows)}));
        c.expect_conforms(
            c.b.add(OpKind::grouped_linear, {x, w, offsets, c.operand(type(DType::f32, {4, 192}), normal())}), 2);
      }
}

/// Rows of a last group without a weight are 0, and their scales are not numbers.
TEST(StackedGate, OfExpertsElsewhere) {
  for (const bool quantized : {false, true})
    for (const std::int64_t rows : {9, 90}) {
      StackedGate c(Rounding::strict);
      const DType dtype = quantized ? DType::i8 : DType::bf16;
      const Value x = c.operand(type(dtype, {rows, 70}), quantized ? integers(-127, 127) : normal());
      const Value w = c.operand(type(dtype, {3, 128, 70}), quantized ? integers(-127, 127) : normal(0.1));
      const Value offsets =
          c.operand(type(DType::i32, {5}), values({0, 2, 2, static_cast<double>(rows / 2), static_cast<double>(rows)}));
      std::vector<Value> operands{x, w, offsets};
      if (quantized) {
        std::vector<double> left(static_cast<std::size_t>(rows), 0.002);
        for (std::int64_t r = rows / 2; r < rows; ++r) left[static_cast<std::size_t>(r)] = std::nan("");
        operands.insert(operands.end(), {{},
                                         c.operand(type(DType::f32, {rows}), values(left)),
                                         c.operand(type(DType::f32, {3, 128}), uniform(0.001, 0.004))});
      }
      c.expect_conforms(c.b.add(OpKind::grouped_linear, operands, {{"out_dtype", "f32"}}), quantized ? 1 : 2, 8);
    }
}

TEST(StackedGate, OfQuantizedRows) {
  for (const DType code : {DType::i8, DType::f8_e4m3})
    for (const std::int64_t rows : {1, 7, 150})
      for (const bool made : {false, true})
        for (const bool constant : {false, true}) {
          StackedGate c(Rounding::strict);
          const Fill codes = code == DType::i8 ? integers(-127, 127) : normal();
          Value x, scale;
          if (made) {
            x = c.b.add(OpKind::dynamic_quant, {c.operand(type(DType::bf16, {rows, 130}), normal())},
                        {{"out_dtype", std::string(name_of(code))}});
            scale = c.b.result_of(x.node, 1);
          } else {
            x = c.operand(type(code, {rows, 130}), codes);
            scale = c.operand(type(DType::f32, {rows}), uniform(0.001, 0.004));
          }
          const Value w = c.operand(type(code, {192, 130}), codes),
                      scales = c.operand(type(DType::f32, {192}), uniform(0.001, 0.004));
          const Value bias = c.operand(type(DType::f32, {192}), normal());
          c.expect_conforms(c.b.add(OpKind::scaled_mm, {x, w, scale, scales, bias}, {{"out_dtype", "f32"}}), 1, 8,
                            constant);
        }
}

TEST(StackedGate, OfBlocksWithScales) {
  for (const DType code : {DType::i8, DType::f8_e4m3})
    for (const std::int64_t rows : {1, 40}) {
      StackedGate c(Rounding::strict);
      const Fill codes = code == DType::i8 ? integers(-127, 127) : normal();
      const Value x = c.operand(type(code, {rows, 300}), codes), w = c.operand(type(code, {256, 300}), codes);
      const Value left = c.operand(type(DType::f32, {rows, 3}), uniform(0.001, 0.004)),
                  right = c.operand(type(DType::f32, {2, 3}), uniform(0.001, 0.004));
      c.expect_conforms(c.b.add(OpKind::scaled_mm, {x, w, left, right}, {{"out_dtype", "f32"}}), 1, 8);
    }
}

TEST(StackedGate, OfQuantizedExperts) {
  for (const std::int64_t rows : {3, 90}) {
    StackedGate c(Rounding::strict);
    const Value x = c.operand(type(DType::i8, {rows, 70}), integers(-127, 127)),
                w = c.operand(type(DType::i8, {3, 128, 70}), integers(-127, 127));
    const Value offsets = c.operand(type(DType::i32, {4}), values({0, 2, 2, static_cast<double>(rows)}));
    const Value left = c.operand(type(DType::f32, {rows}), uniform(0.001, 0.004)),
                right = c.operand(type(DType::f32, {3, 128}), uniform(0.001, 0.004));
    c.expect_conforms(c.b.add(OpKind::grouped_linear, {x, w, offsets, {}, left, right}, {{"out_dtype", "f32"}}), 1, 8);
  }
}

/// Planners leave it to the product after it, unless a kernel that takes it is named.
TEST(StackedGate, IsTakenByPlannersWhereItIsNotSlower) {
  const auto region = [](OpKind op) {
    RegionBuilder b(Rounding::strict);
    const bool is_linear = op == OpKind::linear;
    const DType dtype = is_linear ? DType::f32 : DType::i8;
    std::vector<Value> operands{b.operand(type(dtype, {64, 128})), b.operand(type(dtype, {256, 128}))};
    if (!is_linear)
      operands.insert(operands.end(), {b.operand(type(DType::f32, {64})), b.operand(type(DType::f32, {256}))});
    const Value product = b.add(op, operands, {{"out_dtype", "f32"}});
    b.result(b.add(OpKind::silu_and_mul, {product}));
    b.anchor(product);
    return b.build();
  };
  EXPECT_TRUE(is_taken(region(OpKind::linear)));
  const Region scaled = region(OpKind::scaled_mm);
  EXPECT_FALSE(is_taken(scaled));
  EXPECT_TRUE(select_kernel(scaled).kernel);  // by itself it runs
  force_configs(ForcedConfigs("gemm.scaled_mm.packed: default", "a test"));
  EXPECT_TRUE(is_taken(scaled));
  force_configs({});
}

TEST(BatchedPrologue, NormalizationsOfTheLeftOperand) {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const bool folded : {false, true})
      for (const std::int64_t rows : {3, 40}) {
        RegionBuilder b(Rounding::strict);
        const TensorType x = type(dtype, {2, 3, rows, 72});
        const Value normed = b.add(OpKind::rms_norm, {b.operand(x), b.operand(type(dtype, {72}))});
        const Value product =
            b.add(OpKind::matmul, {normed, b.operand(folded ? type(dtype, {72, 50}) : type(dtype, {2, 3, 72, 50}))});
        b.result(product);
        b.result(normed);
        b.anchor(product);
        expect_region_conforms(b.build(), {normal(), normal(), normal(0.1)}, 1);
      }
}

TEST(BatchedPrologue, WhatStopsItIsSaid) {
  const auto reason = [](bool of_right, const Dims& left, const Dims& right) {
    RegionBuilder b(Rounding::strict);
    const Value a = b.operand(type(DType::f32, left)), c = b.operand(type(DType::f32, right));
    const Value normed = b.add(OpKind::rms_norm, {of_right ? c : a});
    const Value product = b.add(OpKind::matmul, {of_right ? a : normed, of_right ? normed : c});
    b.result(product);
    b.anchor(product);
    const Region region = b.build();
    for (const Kernel* kernel : cpu::kernels_of(OpKind::matmul))
      if (kernel->name == "gemm.matmul.repacked") return kernel->declines(region).value_or("taken");
    return std::string();
  };
  EXPECT_EQ(reason(true, {2, 4, 8}, {2, 8, 8}), "rms_norm before matmul: it makes the right operand");
  EXPECT_EQ(reason(false, {1, 4, 8}, {2, 8, 8}), "rms_norm before matmul: matrices of a meet several of b");
  EXPECT_EQ(reason(false, {2, 4, 8}, {2, 8, 8}), "taken");
}

}  // namespace
}  // namespace cermet
