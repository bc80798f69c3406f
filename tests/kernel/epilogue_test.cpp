// Elementwise nodes after a product run in its store: against the references one after another, and where edges are
// strict, to the bit what the product's own kernel and the elementwise kernels give.
#include <gtest/gtest.h>

#include "tests/kernel/type.hpp"
#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

void make_constant(Region& region, std::initializer_list<std::size_t> operands) {
  for (const std::size_t i : operands)
    region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs |= std::uint64_t{1} << i;
}

using Value = RegionBuilder::Value;

TEST(Epilogue, OfColumnsAndRows) {
  RegionBuilder b(Rounding::strict);
  const Value x = b.operand(type(DType::bf16, {2, 9, 64})), w = b.operand(type(DType::bf16, {45, 64}));
  const Value product = b.add(OpKind::linear, {x, w});
  const Value columns = b.add(OpKind::mul, {b.operand(type(DType::bf16, {1, 1, 45})), product});
  b.result(b.add(OpKind::sub, {columns, b.operand(type(DType::bf16, {2, 9, 1}))}));
  b.result(product);
  b.anchor(product);
  Region region = b.build();
  make_constant(region, {1});
  expect_region_conforms(region, {normal(), normal(0.1), normal(), normal()}, 2);
}

TEST(Epilogue, Activation) {
  for (const OpKind activation : {OpKind::gelu, OpKind::silu, OpKind::leaky_relu, OpKind::clip})
    for (const Rounding rounding : {Rounding::strict, Rounding::fast}) {
      RegionBuilder b(rounding);
      const Value x = b.operand(type(DType::bf16, {5, 128})), w = b.operand(type(DType::bf16, {96, 128}));
      const Value product = b.add(OpKind::linear, {x, w});
      b.result(b.add(activation, {product}));
      b.anchor(product);
      Region region = b.build();
      make_constant(region, {1});
      expect_region_conforms(region, {normal(), normal(0.2)}, 2);
    }
}

TEST(Epilogue, ActivationOfABias) {
  for (const OpKind activation :
       {OpKind::gelu, OpKind::gelu_tanh, OpKind::silu, OpKind::relu, OpKind::clip, OpKind::tanh})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      RegionBuilder b(Rounding::strict);
      const Value product = b.add(OpKind::linear, {b.operand(type(dtype, {17, 33})), b.operand(type(dtype, {45, 33})),
                                                   b.operand(type(dtype, {45}))});
      const Value active = b.add(activation, {product});
      b.result(active);
      b.result(b.add(OpKind::mul, {active, b.operand(type(dtype, {17, 45}))}));
      b.anchor(product);
      Region both = b.build(), one = both;
      one.results.pop_back();
      one.nodes.pop_back();
      one.operands.pop_back();
      for (Region* region : {&both, &one}) {
        make_constant(*region, {1});
        std::vector<Fill> fills(region->operands.size(), normal());
        expect_region_conforms(*region, fills, 2);
      }
    }
}

TEST(Epilogue, OfDualProducts) {
  for (const Rounding rounding : {Rounding::strict, Rounding::fast}) {
    RegionBuilder b(rounding);
    const TensorType w = type(DType::bf16, {40, 64});
    const Value product = b.add(
        OpKind::dual_linear,
        {b.operand(type(DType::bf16, {6, 64})), b.operand(w), b.operand(w), {}, b.operand(type(DType::f32, {40}))},
        {{"activation", "silu"}});
    b.result(b.add(OpKind::add, {product, b.operand(type(DType::bf16, {6, 40}))}));
    b.anchor(product);
    Region region = b.build();
    make_constant(region, {1, 2});
    expect_region_conforms(region, {normal(), normal(0.1), normal(0.1), normal(), normal()}, 2);
  }
}

TEST(Epilogue, OfMatrixProducts) {
  RegionBuilder b(Rounding::strict);
  const Value product =
      b.add(OpKind::matmul, {b.operand(type(DType::f16, {3, 7, 33})), b.operand(type(DType::f16, {3, 33, 50}))});
  const Value scaled = b.add(OpKind::div, {product, b.operand(type(DType::f16, {1}))});
  b.result(b.add(OpKind::max, {scaled, b.operand(type(DType::f16, {3, 7, 50}))}));
  b.anchor(product);
  expect_region_conforms(b.build(), {normal(), normal(), constant(3), normal()}, 1);
}

TEST(Epilogue, OfQuantizedProducts) {
  const Fill whole = integers(-127, 127);
  for (const Rounding rounding : {Rounding::strict, Rounding::fast}) {
    RegionBuilder b(rounding);
    const Value a = b.operand(type(DType::i8, {20, 200})), w = b.operand(type(DType::i8, {70, 200}));
    const Value product = b.add(OpKind::scaled_mm,
                                {a,
                                 w,
                                 b.operand(type(DType::f32, {20})),
                                 b.operand(type(DType::f32, {70, 1})),
                                 {},
                                 b.operand(type(DType::i32, {20})),
                                 b.operand(type(DType::bf16, {20, 70}))},
                                {{"out_dtype", "bf16"}});
    const Value sum = b.add(OpKind::add, {product, b.operand(type(DType::bf16, {20, 70}))});
    b.result(b.add(OpKind::relu, {sum}));
    b.anchor(product);
    Region region = b.build();
    make_constant(region, {1});
    expect_region_conforms(
        region, {whole, whole, uniform(0.001, 0.002), uniform(0.002, 0.02), integers(-20, 20), normal(), normal()}, 1);
  }
}

/// The halves of stacked weights meet in one tile, where they are whole panels.
TEST(Epilogue, GateOfStackedWeights) {
  for (const OpKind gate : {OpKind::silu_and_mul, OpKind::gelu_and_mul})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const std::int64_t rows : {1, 5, 130})
        for (const Rounding rounding : {Rounding::strict, Rounding::fast}) {
          RegionBuilder b(rounding);
          const Value product = b.add(
              OpKind::linear,
              {b.operand(type(dtype, {rows, 70})), b.operand(type(dtype, {192, 70})), b.operand(type(dtype, {192}))});
          const Value gated = b.add(gate, {product});
          b.result(gated);
          b.result(b.add(OpKind::quantize, {gated, b.operand(type(DType::f32, {96}))}));
          b.anchor(product);
          Region region = b.build();
          make_constant(region, {1});
          expect_region_conforms(region, {normal(), normal(0.1), normal(), uniform(0.02, 0.04)}, 2);
        }
}

TEST(Epilogue, HalvesThatAreNoWholePanelsAreNotGated) {
  RegionBuilder b(Rounding::strict);
  const Value product =
      b.add(OpKind::linear, {b.operand(type(DType::f32, {4, 64})), b.operand(type(DType::f32, {96, 64}))});
  b.result(b.add(OpKind::silu_and_mul, {product}));
  b.anchor(product);
  const Region region = b.build();
  for (const Kernel* kernel : cpu::kernels_of(OpKind::linear))
    EXPECT_TRUE(!kernel->fuses || kernel->declines(region)) << kernel->name;
}

/// What QDQ files put after products: values are quantized and dequantized at once, or stored quantized, before and
/// after a bias or an activation.
TEST(Epilogue, OfProductsThatAreQuantizedAgain) {
  const TensorType one = type(DType::f32, {}), each = type(DType::f32, {70});
  for (const std::optional<DType> offset :
       {std::optional<DType>(), std::optional(DType::i8), std::optional(DType::i32)})
    for (const bool by_column : {false, true})
      for (const int form : {0, 1, 2, 3, 4}) {
        RegionBuilder b(Rounding::strict);
        std::vector<Fill> fills;
        const auto operand = [&](const TensorType& t, Fill fill) {
          fills.push_back(std::move(fill));
          return b.operand(t);
        };
        const Value a = operand(type(DType::i8, {30, 200}), integers(-128, 127)),
                    w = operand(type(DType::i8, {70, 200}), integers(-127, 127));
        const Value left = operand(one, constant(0.004)), right = operand(each, uniform(0.002, 0.02));
        const Value product =
            b.add(OpKind::scaled_mm, {a, w, left, right, {}, operand(type(DType::i32, {}), constant(-9))},
                  {{"out_dtype", "f32"}});
        const Value scale = operand(by_column ? each : one, by_column ? uniform(0.01, 0.02) : constant(0.015));
        const Value point = offset ? operand(type(DType::i8, {}), constant(-11)) : Value{};
        const Value shift = offset ? operand(type(*offset, {}), constant(-11)) : Value{};
        const auto quantized = [&](const Value& x) { return b.add(OpKind::quantize, {x, scale, {}, point}); };
        const auto read = [&](const Value& q) {
          return b.add(OpKind::dequantize, {q, scale, shift}, {{"granularity", "broadcast"}});
        };
        const Value first = read(quantized(product));
        if (form == 0) b.result(first);
        const Value sum = form == 0 ? Value{} : b.add(OpKind::add, {first, operand(each, normal())});
        if (form == 1) b.result(read(quantized(sum)));
        if (form == 2) b.result(quantized(b.add(OpKind::gelu, {sum})));
        if (form == 3) b.result(quantized(sum));
        if (form == 4) {
          const Value both = quantized(sum);
          b.result(both);
          b.result(read(both));
        }
        b.anchor(product);
        Region region = b.build();
        make_constant(region, {1});
        expect_region_conforms(region, fills, 1,
                               3e4);  // a step of what is quantized; the bits are those of single operators
      }
}

TEST(Epilogue, OfGroups) {
  RegionBuilder b(Rounding::strict);
  const Value x = b.operand(type(DType::bf16, {30, 64})), w = b.operand(type(DType::bf16, {3, 40, 64})),
              offsets = b.operand(type(DType::i32, {4}));
  const Value product = b.add(OpKind::grouped_linear, {x, w, offsets, b.operand(type(DType::bf16, {3, 40}))});
  const Value gated = b.add(OpKind::mul, {product, b.operand(type(DType::bf16, {30, 1}))});
  b.result(b.add(OpKind::add, {gated, b.operand(type(DType::bf16, {30, 40}))}));
  b.anchor(product);
  Region region = b.build();
  make_constant(region, {1});
  expect_region_conforms(region, {normal(), normal(0.1), values({0, 11, 11, 30}), normal(), normal(), normal()}, 2);
}

TEST(Epilogue, DeclinesWhatIsNoEpilogue) {
  const auto reasons = [](const Region& region) {
    std::string text;
    for (const Kernel* kernel : cpu::kernels_of(region.problem().op->kind)) {
      const Decline reason = kernel->declines(region);
      text += kernel->name == "gemm.linear.plain" ? reason.value_or("taken") : "";
    }
    return text;
  };
  RegionBuilder after;
  const TensorType w = type(DType::bf16, {64, 64}), x = type(DType::bf16, {4, 64});
  const Value product = after.add(OpKind::linear, {after.operand(x), after.operand(w)});
  after.result(after.add(OpKind::rms_norm, {product, {}}));
  after.anchor(product);
  EXPECT_EQ(reasons(after.build()), "rms_norm after linear: only elementwise operators can follow");
  RegionBuilder before;
  before.result(before.add(OpKind::linear, {before.add(OpKind::softmax, {before.operand(x)}), before.operand(w)}));
  EXPECT_EQ(reasons(before.build()),
            "softmax before linear: only elementwise operators, a normalization, with what is elementwise or gathered "
            "before it, or a gate can precede");
}

}  // namespace
}  // namespace cermet
