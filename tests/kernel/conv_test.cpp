// Convolutions beyond their operator's cases: what follows them in a region, and sizes that are known only at the
// launch.
#include <gtest/gtest.h>

#include "kernel/cpu/gemm/parts.hpp"
#include "op/schema/case_data.hpp"
#include "select/bound_op.hpp"
#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

using Value = RegionBuilder::Value;

struct Shapes {
  Dims x, weight, y;
  std::int64_t group;
};

const Shapes shapes[] = {
    {{2, 7, 9, 20}, {45, 20, 3, 3}, {2, 7, 9, 45}, 1},   {{1, 17, 14, 32}, {45, 32, 3, 3}, {1, 17, 14, 45}, 1},
    {{1, 6, 5, 40}, {40, 1, 3, 3}, {1, 6, 5, 40}, 40},   {{1, 6, 5, 40}, {48, 20, 3, 3}, {1, 6, 5, 48}, 2},
    {{1, 2, 19, 84}, {84, 1, 3, 3}, {1, 2, 19, 84}, 84},
};

/// conv, then the nodes that `follow` adds to it; against the references, and where edges are strict to the bit against
/// the kernels one after another.
template <class Follow>
void expect_conforms(const Shapes& s, DType dtype, Rounding rounding, std::vector<Fill> fills, Follow&& follow) {
  RegionBuilder b(rounding);
  const Value conv =
      b.add(OpKind::conv, {b.operand({dtype, s.x}), b.operand({dtype, s.weight}), b.operand({dtype, {s.weight[0]}})},
            {{"layout", "nhwc"}, {"pads", Ints{1, 1, 1, 1}}, {"group", s.group}});
  follow(b, conv);
  b.anchor(conv);
  Region region = b.build();
  region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs |= 2;
  fills.insert(fills.begin(), {normal(), normal(0.2), normal()});
  // The absolute values of the terms of a sum add up to 0.13 for each; what follows may double an error.
  const double terms = static_cast<double>(product(s.weight).constant() / s.weight[0].constant());
  expect_region_conforms(region, fills, 1, 4 + 0.25 * terms);
}

TEST(Conv, BoundsAfterIt) {
  for (const Shapes& s : shapes)
    for (const OpKind bounds : {OpKind::relu, OpKind::clip})
      for (const Rounding rounding : {Rounding::strict, Rounding::fast})
        for (const DType dtype : {DType::f32, DType::f16})
          if (dtype == DType::f32 || s.weight[1] != Dim(1))
            expect_conforms(s, dtype, rounding, {},
                            [&](RegionBuilder& b, Value conv) { b.result(b.add(bounds, {conv})); });
}

TEST(Conv, FunctionAfterIt) {
  for (const Shapes& s : shapes)
    for (const OpKind function : {OpKind::silu, OpKind::gelu, OpKind::sigmoid, OpKind::leaky_relu})
      for (const Rounding rounding : {Rounding::strict, Rounding::fast}) {
        expect_conforms(s, DType::f32, rounding, {},
                        [&](RegionBuilder& b, Value conv) { b.result(b.add(function, {conv})); });
        expect_conforms(s, DType::f32, rounding, {normal()}, [&](RegionBuilder& b, Value conv) {
          b.result(b.add(function, {b.add(OpKind::add, {b.operand({DType::f32, s.y}), conv})}));
        });
      }
}

/// A convolution to 96 channels, of x or of x times a gate for each sample and channel.
Region convolved(const Dims& x, std::int64_t taps, const Attributes& attributes, bool gated, std::vector<Fill>& fills) {
  RegionBuilder b(Rounding::strict);
  const Value image = b.operand({DType::f32, x});
  fills = {normal()};
  if (gated) fills.push_back(normal());
  const Value read = gated ? b.add(OpKind::mul, {b.operand({DType::f32, {x[0], 1, 1, x[3]}}), image}) : image;
  const Value conv = b.add(OpKind::conv, {read, b.operand({DType::f32, {96, x[3], taps, taps}})}, attributes);
  fills.push_back(normal(0.2));
  b.result(b.add(OpKind::relu, {conv}));
  b.anchor(conv);
  Region region = b.build();
  region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs |= 2;
  return region;
}

TEST(Conv, WindowsAsRowsOfTiles) {
  cpu::force_isa(cpu::supported_isas().back());
  if (const auto reason = cpu::parts_decline()) GTEST_SKIP() << *reason;
  const auto& kernels = cpu::kernels_of(OpKind::conv);
  const Kernel& parts =
      **std::ranges::find_if(kernels, [](const Kernel* kernel) { return kernel->name == "conv.parts"; });
  const Ints twice{2, 2};
  const std::tuple<Dims, std::int64_t, Attributes, bool> cases[] = {
      {{2, 16, 18, 64}, 3, {{"layout", "nhwc"}, {"strides", twice}, {"pads", Ints{1, 0, 1, 2}}}, false},
      {{1, 17, 24, 64},
       2,
       {{"layout", "nhwc"}, {"strides", Ints{1, 2}}, {"dilations", Ints{3, 2}}, {"pads", Ints{2, 0, 1, 1}}},
       false},
      {{1, 24, 23, 70}, 1, {{"layout", "nhwc"}, {"strides", twice}}, false},
      {{2, 13, 14, 100}, 1, {{"layout", "nhwc"}}, true},
  };
  for (const auto& [x, taps, attributes, gated] : cases) {
    std::vector<Fill> fills;
    const Region region = convolved(x, taps, attributes, gated, fills);
    ASSERT_EQ(parts.declines(region), std::nullopt) << region.to_string();
    expect_region_conforms(region, fills, 1, 4 + 0.25 * static_cast<double>(taps * taps * x[3].constant()));
  }
  std::vector<Fill> fills;
  const auto reason = [&](const Dims& x, std::int64_t taps, bool gated) {
    return parts.declines(convolved(x, taps, {{"layout", "nhwc"}, {"strides", twice}}, gated, fills)).value_or("taken");
  };
  EXPECT_EQ(reason({1, 32, 32, 72}, 3, false), "windows are of several pixels, whose 72 channels are not whole chunks");
  EXPECT_EQ(reason({1, 32, 32, 544}, 3, false), "windows have more than 4608 elements, whose copies take memory");
  EXPECT_EQ(reason({1, 32, 32, 64}, 3, true), "windows of several pixels would be multiplied for each");
  EXPECT_EQ(reason({1, 21, 21, 64}, 1, false), "there are 121 rows, fewer than 128");
}

TEST(Conv, ResidualAfterIt) {
  for (const Shapes& s : shapes)
    for (const Rounding rounding : {Rounding::strict, Rounding::fast}) {
      expect_conforms(s, DType::f32, rounding, {normal()}, [&](RegionBuilder& b, Value conv) {
        b.result(b.add(OpKind::relu, {b.add(OpKind::add, {b.operand({DType::f32, s.y}), conv})}));
      });
      expect_conforms(s, DType::f32, rounding, {normal()}, [&](RegionBuilder& b, Value conv) {  // no bounds of a sum
        b.result(b.add(OpKind::add, {b.add(OpKind::relu, {conv}), b.operand({DType::f32, s.y})}));
      });
      expect_conforms(s, DType::f32, rounding, {uniform(-1, 1)}, [&](RegionBuilder& b, Value conv) {
        b.result(b.add(OpKind::mul, {b.add(OpKind::silu, {conv}), b.operand({DType::f32, {s.y[3]}})}));
      });
    }
}

/// Elementwise nodes before a convolution of single pixels: where a kernel takes both, it gives what they give one
/// after the other.
TEST(Conv, ElementwiseBeforeIt) {
  struct Sizes {
    std::int64_t samples, rows, columns, channels, outputs, stride;
  };
  for (const Sizes& s : {Sizes{1, 7, 9, 20, 45, 1},
                         {2, 7, 7, 48, 33, 1},
                         {3, 5, 1, 16, 64, 1},
                         {2, 9, 8, 24, 40, 2},
                         {1, 40, 50, 256, 24, 1}})
    for (const Rounding rounding : {Rounding::strict, Rounding::fast})
      for (const int form : {0, 1, 2, 3}) {
        RegionBuilder b(rounding);
        const Dims x{s.samples, s.rows, s.columns, s.channels};
        std::vector<Fill> fills{normal(), uniform(0, 1)};
        Value before = b.operand({DType::f32, x});
        if (form == 0) before = b.add(OpKind::mul, {before, b.operand({DType::f32, {s.samples, 1, 1, s.channels}})});
        if (form == 1)
          before = b.add(OpKind::relu, {b.add(OpKind::mul, {before, b.operand({DType::f32, {s.channels}})})});
        if (form == 2) before = b.add(OpKind::add, {before, b.operand({DType::f32, x})});
        if (form == 3) before = b.add(OpKind::relu, {before}), fills.pop_back();
        const Value weight = b.operand({DType::f32, {s.outputs, s.channels, 1, 1}}),
                    bias = b.operand({DType::f32, {s.outputs}});
        const Value conv =
            b.add(OpKind::conv, {before, weight, bias}, {{"layout", "nhwc"}, {"strides", Ints{s.stride, s.stride}}});
        b.result(b.add(OpKind::silu, {conv}));
        b.anchor(conv);
        Region region = b.build();
        region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs |= 2;
        fills.push_back(normal(0.2)), fills.push_back(normal());
        expect_region_conforms(region, fills, 1, 4 + 0.25 * static_cast<double>(s.channels));
      }
}

TEST(Conv, TransposeBeforeIt) {
  for (const bool rows_only : {false, true})
    for (const std::int64_t channels : {1, 3, 20})
      for (const std::int64_t stride : {1, 2}) {
        RegionBuilder b(Rounding::strict);
        const Dims x = rows_only ? Dims{2, channels, 31} : Dims{2, channels, 13, 18};
        const Dims weight = rows_only ? Dims{33, channels, 3} : Dims{33, channels, 3, 5};
        const Value image = b.add(OpKind::transpose, {b.operand({DType::f32, x})},
                                  {{"permutation", rows_only ? Ints{0, 2, 1} : Ints{0, 2, 3, 1}}});
        const Value conv = b.add(OpKind::conv, {image, b.operand({DType::f32, weight}), b.operand({DType::f32, {33}})},
                                 {{"layout", "nhwc"},
                                  {"pads", rows_only ? Ints{1, 1} : Ints{1, 2, 1, 0}},
                                  {"strides", rows_only ? Ints{stride} : Ints{stride, stride}}});
        b.result(b.add(OpKind::relu, {conv}));
        b.anchor(conv);
        Region region = b.build();
        region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs |= 2;
        expect_region_conforms(region, {normal(), normal(0.2), normal()}, 1, 80);
      }
}

TEST(Conv, TransposeBeforeWindowsOfThreeByThree) {
  for (const bool pools : {false, true}) {
    RegionBuilder b(Rounding::strict);
    const Value image =
        b.add(OpKind::transpose, {b.operand({DType::f32, {2, 32, 14, 17}})}, {{"permutation", Ints{0, 2, 3, 1}}});
    const Value conv =
        b.add(OpKind::conv, {image, b.operand({DType::f32, {45, 32, 3, 3}}), b.operand({DType::f32, {45}})},
              {{"layout", "nhwc"}, {"pads", Ints{1, 1, 1, 1}}});
    const Value relu = b.add(OpKind::relu, {conv});
    b.result(
        pools ? b.add(OpKind::max_pool, {relu}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"layout", "nhwc"}})
              : relu);
    b.anchor(conv);
    Region region = b.build();
    region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs |= 2;
    expect_region_conforms(region, {normal(), normal(0.2), normal()}, pools ? 1 : 2, 80);
  }
}

TEST(Conv, PoolAfterIt) {
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{16, 20}, {17, 13}, {14, 15}})
    for (const OpKind function : {OpKind::relu, OpKind::silu}) {
      RegionBuilder b(Rounding::strict);
      const Value conv = b.add(OpKind::conv,
                               {b.operand({DType::f32, {2, rows, columns, 32}}),
                                b.operand({DType::f32, {45, 32, 3, 3}}), b.operand({DType::f32, {45}})},
                               {{"layout", "nhwc"}, {"pads", Ints{1, 1, 1, 1}}});
      b.result(b.add(OpKind::max_pool, {b.add(function, {conv})},
                     {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"layout", "nhwc"}}));
      b.anchor(conv);
      Region region = b.build();
      region.nodes[static_cast<std::size_t>(region.anchor)].problem.constant_inputs |= 2;
      expect_region_conforms(region, {normal(), normal(0.2), normal()}, 1, 80);
    }
}

TEST(Conv, TakesAnySizeUpToTheMaximum) {
  const OpDefinition& op = definition(OpKind::conv);
  ThreadPool pool(2);
  for (const auto& [channels, weight, group] : {std::tuple<std::int64_t, Dims, std::int64_t>{20, {33, 20, 3, 3}, 1},
                                                {32, {33, 32, 3, 3}, 1},
                                                {24, {24, 1, 3, 3}, 24}}) {
    for (const char* layout : {"nhwc", "nchw"}) {
      const bool last = std::string_view(layout) == "nhwc";
      const Attributes attributes{{"layout", layout},
                                  {"strides", Ints{channels == 32 ? 1 : 2, 1}},
                                  {"pads", Ints{1, 1, 0, 1}},
                                  {"group", group}};
      const auto x_dims = [&](const Dim& n, const Dim& h, const Dim& w) {
        return last ? Dims{n, h, w, channels} : Dims{n, channels, h, w};
      };
      const Dim n = Dim::symbol("N"), h = Dim::symbol("H"), w = Dim::symbol("W");
      Problem symbolic =
          make_problem(op, {TensorType{DType::f32, x_dims(n, h, w)}, TensorType{DType::f32, weight}}, attributes);
      symbolic.constant_inputs = 2;
      for (const auto& [name, most] : {std::pair<const char*, std::int64_t>{"N", 3}, {"H", 21}, {"W", 40}})
        symbolic.maximum.set(Symbol(name), most);
      int taken = 0;
      for (const Kernel* kernel : cpu::kernels_of(OpKind::conv)) {
        if (kernel->declines(symbolic)) continue;
        ++taken;
        BoundOp bound(symbolic, *kernel, pool);
        for (const auto& size : {std::array<std::int64_t, 3>{3, 21, 40}, {1, 5, 3}, {2, 20, 1}, {0, 7, 7}}) {
          const CaseData data = make_case_data(op, {"any",
                                                    {CaseOperand{{DType::f32, x_dims(size[0], size[1], size[2])}},
                                                     CaseOperand{{DType::f32, weight}, normal(0.2), 0, true}},
                                                    attributes});
          bound.prepack(1, data.inputs[1]);
          const OwnedTensor y(DType::f32, bind(data.problem.outputs[0].dims, {}));
          bound.run(data.inputs, std::array{y.view});
          EXPECT_EQ(compare(data.problem, run_reference(data), {y.view}), "")
              << kernel->name << ", " << layout << ", height " << size[1];
        }
      }
      EXPECT_GT(taken, 0) << layout;
    }
  }
}

const Kernel& kernel_named(std::string_view name) {
  for (const Kernel* kernel : cpu::kernels_of(OpKind::conv))
    if (kernel->name == name) return *kernel;
  throw Error(Status::internal, "no such kernel");
}

/// Its largest error as a fraction of what float32 sums of so many terms may err by.
double error_of(const Kernel& kernel, const CaseData& data) {
  ThreadPool pool(2);
  BoundOp op(data.problem, kernel, pool);
  op.prepack(1, data.inputs[1]);
  const OwnedTensor y(DType::f32, bind(data.problem.outputs[0].dims, {}));
  op.run(data.inputs, std::array{y.view});
  const Expected expected = run_reference(data);
  const double depth = definition(OpKind::conv).rounding_depth(data.problem);
  double largest = 0;
  for (std::int64_t i = 0; i < y.view.elements(); ++i)
    largest = std::max(largest, std::abs(load(y.view, i) - load(expected.outputs[0].view, i)) /
                                    (depth * 0x1p-24 * expected.magnitude[0][static_cast<std::size_t>(i)]));
  return largest;
}

TEST(Conv, WinogradStaysWellWithinTheBound) {
  const Attributes attributes{{"layout", "nhwc"}, {"pads", Ints{1, 1, 1, 1}}};
  for (const std::int64_t channels : {32, 128, 512})
    for (const Fill& fill : {normal(), uniform(0, 1), normal(0.01, 1)}) {
      const CaseData data = make_case_data(definition(OpKind::conv),
                                           {"error",
                                            {CaseOperand{{DType::f32, {1, 14, 17, channels}}, fill},
                                             CaseOperand{{DType::f32, {32, channels, 3, 3}}, normal(), 0, true}},
                                            attributes});
      const double direct = error_of(kernel_named("conv.packed"), data),
                   winograd = error_of(kernel_named("conv.winograd"), data);
      EXPECT_LT(direct, 0.05) << channels;
      EXPECT_LT(winograd, 0.2) << channels;
    }
}

}  // namespace
}  // namespace cermet
