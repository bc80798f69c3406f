// Rows that are quantized where a product of quantized operands packs them: the same bits as kernels one after
// another.
#include <gtest/gtest.h>

#include "tests/kernel/type.hpp"
#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

using LeadingDims = Dims;
using Value = RegionBuilder::Value;

/// A weight [40, length] with a scale for each column, and the product of rows that a node quantizes; `scale` numbers
/// the node's result.
struct QuantizedProduct {
  RegionBuilder b{Rounding::strict};
  std::vector<Fill> fills;
  Value product;

  Value operand(const TensorType& t, const Fill& fill) {
    fills.push_back(fill);
    return b.operand(t);
  }
  void multiply(const Value& rows, std::int32_t scale, std::int64_t length, DType code = DType::i8) {
    const Value w = operand(type(code, {40, length}), code == DType::i8 ? integers(-127, 127) : normal());
    const Value scales = operand(type(DType::f32, {40}), uniform(0.001, 0.002)),
                bias = operand(type(DType::f32, {40}), normal());
    product = b.add(OpKind::scaled_mm, {rows, w, b.result_of(rows.node, scale), scales, bias}, {{"out_dtype", "bf16"}});
  }
  Region build(bool constant = true) const {
    RegionBuilder copy = b;
    copy.anchor(product);
    Region region = copy.build();
    if (constant) region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs = 2;
    return region;
  }
  void expect_conforms(double scale, bool constant = true) const {
    expect_region_conforms(build(constant), fills, 1, scale);
  }
};

std::string decline_of_packed(const Region& region) {
  for (const Kernel* kernel : cpu::kernels_of(OpKind::scaled_mm))
    if (kernel->name == "gemm.scaled_mm.packed") return kernel->declines(region).value_or("taken");
  return {};
}

TEST(QuantizedRows, DynamicQuantization) {
  for (const DType code : {DType::i8, DType::f8_e4m3})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const auto& [rows, length] :
           {std::pair<std::int64_t, std::int64_t>{1, 96}, {2, 71}, {5, 3}, {33, 130}, {1030, 37}}) {
        QuantizedProduct c;
        const Value x = c.operand(type(dtype, {rows, length}), normal());
        c.multiply(c.b.add(OpKind::dynamic_quant, {x}, {{"out_dtype", std::string(name_of(code))}}), 1, length, code);
        c.b.result(c.product);
        c.expect_conforms(8);
      }
}

TEST(QuantizedRows, RowsWithSmoothingFactorsAndAWeightThatIsNotConstant) {
  for (const LeadingDims& rows : {LeadingDims{1}, LeadingDims{2, 9}, LeadingDims{3, 7, 20}}) {
    QuantizedProduct c;
    Dims dims = rows;
    dims.emplace_back(66);
    const Value x = c.operand(type(DType::f32, dims), normal()),
                smooth = c.operand(type(DType::f32, {66}), uniform(0.5, 2));
    c.multiply(c.b.add(OpKind::dynamic_quant, {x, smooth}), 1, 66);
    c.b.result(c.b.add(OpKind::gelu, {c.product}));
    c.expect_conforms(8, false);
  }
}

TEST(QuantizedRows, GroupsOfARow) {
  for (const std::int64_t rows : {1, 20, 1030}) {
    QuantizedProduct c;
    const Value x = c.operand(type(DType::bf16, {rows, 300}), normal());
    c.multiply(c.b.add(OpKind::dynamic_quant, {x}, {{"granularity", "group"}, {"group_size", std::int64_t{128}}}), 1,
               300);
    c.b.result(c.product);
    c.expect_conforms(8);
  }
}

TEST(QuantizedRows, ScalesOfTheWeightsBlocks) {
  for (const std::int64_t rows : {1, 20}) {
    QuantizedProduct c;
    const Value x = c.operand(type(DType::bf16, {rows, 200}), normal()), q = c.b.add(OpKind::dynamic_quant, {x});
    const Value w = c.operand(type(DType::i8, {40, 200}), integers(-127, 127)),
                scales = c.operand(type(DType::f32, {1, 2}), uniform(0.001, 0.002));
    c.product = c.b.add(OpKind::scaled_mm, {q, w, c.b.result_of(0, 1), scales});
    c.b.result(c.product);
    c.expect_conforms(8);
  }
}

TEST(QuantizedRows, NormsAndGates) {
  for (const std::int64_t rows : {1, 4, 33, 1030}) {
    QuantizedProduct norm;
    const Value x = norm.operand(type(DType::bf16, {rows, 96}), normal()),
                w = norm.operand(type(DType::bf16, {96}), normal());
    norm.multiply(norm.b.add(OpKind::rms_norm_quant, {x, w}), 1, 96);
    norm.b.result(norm.product);
    norm.expect_conforms(40);

    QuantizedProduct sum;
    const Value y = sum.operand(type(DType::bf16, {rows, 96}), normal()),
                more = sum.operand(type(DType::f32, {rows, 96}), normal());
    sum.multiply(sum.b.add(OpKind::add_rms_norm_quant, {y, more, sum.operand(type(DType::bf16, {96}), normal())}), 2,
                 96);
    sum.b.result(sum.product);
    sum.b.result(sum.b.result_of(0, 1));
    sum.expect_conforms(40);

    QuantizedProduct gate;
    gate.multiply(gate.b.add(OpKind::silu_and_mul_quant, {gate.operand(type(DType::bf16, {rows, 142}), normal())}), 1,
                  71);
    gate.b.result(gate.product);
    gate.expect_conforms(40);
  }
}

TEST(QuantizedRows, WhatComesBeforeAQuantization) {
  for (const std::int64_t rows : {1, 33}) {
    QuantizedProduct c;
    const TensorType t = type(DType::bf16, {rows, 96});
    const Value sum = c.b.add(OpKind::add, {c.operand(t, normal()), c.operand(t, normal())});
    const Value normed = c.b.add(OpKind::rms_norm, {sum, c.operand(type(DType::bf16, {96}), normal())});
    c.multiply(c.b.add(OpKind::dynamic_quant, {normed}), 1, 96);
    c.b.result(c.product);
    c.b.result(sum);
    c.expect_conforms(40);
  }
}

TEST(QuantizedRows, StaticScales) {
  for (const std::int64_t rows : {1, 33}) {
    QuantizedProduct c;
    const Value x = c.operand(type(DType::bf16, {rows, 96}), normal()),
                w = c.operand(type(DType::bf16, {96}), normal());
    const Value scale = c.operand(type(DType::f32, {}), uniform(0.01, 0.03));
    const Value q = c.b.add(OpKind::rms_norm_quant, {x, w, {}, scale});
    const Value weight = c.operand(type(DType::i8, {40, 96}), integers(-127, 127));
    c.product = c.b.add(OpKind::scaled_mm, {q, weight, scale});
    c.b.result(c.product);
    c.expect_conforms(40);
  }
}

/// Rows of four groups, one of them empty, by weights [4, 40, 71] and their scales.
TEST(QuantizedRows, OfGroups) {
  for (const bool gated : {false, true})
    for (const bool constant : {false, true})
      for (const std::int64_t rows : {3, 50, 700}) {
        QuantizedProduct c;
        const Value x = c.operand(type(DType::bf16, {rows, gated ? 142 : 71}), normal());
        const Value q = c.b.add(gated ? OpKind::silu_and_mul_quant : OpKind::dynamic_quant, {x});
        const Value w = c.operand(type(DType::i8, {4, 40, 71}), integers(-127, 127));
        const Value offsets = c.operand(type(DType::i32, {5}),
                                        values({0, 2, 2, static_cast<double>(rows - 1), static_cast<double>(rows)}));
        const Value scales = c.operand(type(DType::f32, {4, 40}), uniform(0.001, 0.002));
        c.product = c.b.add(OpKind::grouped_linear, {q, w, offsets, {}, c.b.result_of(0, 1), scales});
        c.b.result(c.product);
        c.expect_conforms(40, constant);
      }
}

/// Rows of weights that are elsewhere come last; there may be no others.
TEST(QuantizedRows, OfGroupsWithoutAWeight) {
  for (const DType code : {DType::i8, DType::f8_e4m3})
    for (const bool gated : {false, true})
      for (const double own : {0, 2}) {
        QuantizedProduct c;
        const Value x = c.operand(type(DType::bf16, {5, gated ? 142 : 71}), normal());
        const Value q = c.b.add(gated ? OpKind::silu_and_mul_quant : OpKind::dynamic_quant, {x},
                                {{"out_dtype", std::string(name_of(code))}});
        const Value w = c.operand(type(code, {2, 40, 71}), code == DType::i8 ? integers(-127, 127) : normal());
        const Value offsets = c.operand(type(DType::i32, {4}), values({0, 0, own, 5}));
        const Value scales = c.operand(type(DType::f32, {2, 40}), uniform(0.001, 0.002));
        c.product = c.b.add(OpKind::grouped_linear, {q, w, offsets, {}, c.b.result_of(0, 1), scales});
        c.b.result(c.product);
        c.expect_conforms(40);
      }
}

TEST(QuantizedRows, Declines) {
  struct Bad {
    Attributes attributes;
    std::int32_t also = -1;  ///< a result of the quantization that leaves
    std::string why;
  };
  for (const Bad& bad : {Bad{{}, 0, "the quantized rows are read elsewhere, too"},
                         {{}, 1, "the scales of rows are read elsewhere, too"},
                         {{{"granularity", "tensor"}}, -1, "all rows have one scale"},
                         {{{"asymmetric", true}}, -1, "the product reads its a_zp inside"}}) {
    QuantizedProduct c;
    const Value q = c.b.add(OpKind::dynamic_quant, {c.operand(type(DType::f32, {8, 96}), normal())}, bad.attributes);
    const Value w = c.operand(type(DType::i8, {40, 96}), integers(-127, 127));
    std::vector<Value> operands{q, w, c.b.result_of(0, 1)};
    if (bad.attributes.find("asymmetric")) operands.insert(operands.end(), {Value{}, Value{}, c.b.result_of(0, 2)});
    c.product = c.b.add(OpKind::scaled_mm, operands);
    c.b.result(c.product);
    if (bad.also >= 0) c.b.result(c.b.result_of(0, bad.also));
    EXPECT_EQ(decline_of_packed(c.build()), "dynamic_quant before scaled_mm: " + bad.why);
  }
}

TEST(QuantizedRows, DeclinesFactorsByGroupsOfRows) {
  QuantizedProduct c;
  const Value x = c.operand(type(DType::f32, {8, 96}), normal()),
              smooth = c.operand(type(DType::f32, {3, 96}), normal());
  c.multiply(c.b.add(OpKind::dynamic_quant, {x, smooth, c.operand(type(DType::i32, {8}), integers(0, 2))}), 1, 96);
  c.b.result(c.product);
  EXPECT_EQ(decline_of_packed(c.build()), "dynamic_quant before scaled_mm: its factors go by groups of rows");
}

}  // namespace
}  // namespace cermet
