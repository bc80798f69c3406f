// Convolutions: which kernel takes which, what may follow them in the same launch, and their form as a product.
#include <regex>

#include "kernel/cuda/conv/as_linear.hpp"
#include "tests/kernel_cuda/epilogue_case.hpp"
#include "tests/support/conv_regions.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

using enum DType;

Attributes nhwc(Attributes attributes = {}) {
  attributes.set("layout", "nhwc");
  return attributes;
}

std::vector<EpilogueCase> cases() {
  std::vector<EpilogueCase> list;
  const Attributes padded = nhwc({{"pads", Ints{1, 1, 1, 1}}});
  list.push_back(
      {OpKind::conv,
       {"bias_then_sum_and_relu", {real(f16, {2, 9, 7, 64}), weight(f16, {72, 64, 3, 3}), real(f16, {72})}, padded},
       {After{{OpKind::add, TensorType{f16, {2, 9, 7, 72}}}, normal()}, After{{OpKind::relu}}},
       {"conv.hopper", "conv.implicit", "conv.general"}});
  list.push_back({OpKind::conv,
                  {"float32_by_channel", {real(f32, {2, 9, 7, 12}), weight(f32, {20, 12, 3, 3})}, padded},
                  {After{{OpKind::mul, TensorType{f32, {20}}}, normal()},
                   After{{OpKind::add, TensorType{f32, {1, 1, 1, 20}}}, normal()}},
                  {"conv.implicit", "conv.general"}});
  list.push_back({OpKind::conv,
                  {"first", {real(f16, {2, 19, 18, 3}), weight(f16, {40, 3, 3, 3}), real(f16, {40})}, padded},
                  {After{{OpKind::relu}}, After{{OpKind::mul, TensorType{f16, {2, 19, 18, 40}}}, normal()}},
                  {"conv.few_channels", "conv.implicit", "conv.general"}});
  Attributes activated = nhwc({{"activation", "silu"}});
  list.push_back(
      {OpKind::conv,
       {"pixels",
        {real(bf16, {2, 9, 7, 64}), weight(bf16, {72, 64, 1, 1}), real(bf16, {72}), real(bf16, {2, 9, 7, 72})},
        activated},
       {After{{OpKind::mul, TensorType{bf16, {2, 9, 7, 1}}}, normal()}},
       {"conv.pointwise.hopper", "conv.hopper", "conv.pointwise.tensor", "conv.pointwise.general", "conv.implicit",
        "conv.general"}});
  Attributes depthwise = padded;
  depthwise.set("group", std::int64_t{40});
  list.push_back({OpKind::conv,
                  {"depthwise", {real(f16, {2, 9, 7, 40}), weight(f16, {40, 1, 3, 3}), real(f16, {40})}, depthwise},
                  {After{{OpKind::hard_swish}}},
                  {"conv.depthwise", "conv.general"}});
  list.push_back({OpKind::conv,
                  {"channels_first", {real(f16, {2, 6, 9, 7}), weight(f16, {7, 6, 3, 3}), real(f16, {7})}},
                  {After{{OpKind::mul, TensorType{f16, {5}}}, normal()}, After{{OpKind::relu}}},
                  {"conv.general"}});
  list.push_back(
      {OpKind::conv_transpose,
       {"transposed", {real(f32, {1, 5, 4, 6}), weight(f32, {5, 7, 3, 3}), real(f32, {7})}, {{"strides", Ints{2, 2}}}},
       {After{{OpKind::relu}}},
       {"conv_transpose.general"}});
  return list;
}

class ConvEpilogue : public testing::TestWithParam<EpilogueCase> {};
TEST_P(ConvEpilogue, AgreesWithTheReferences) { expect_agrees(GetParam()); }
TEST_P(ConvEpilogue, IsTakenByEveryFamily) { expect_taken(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Conv, ConvEpilogue, testing::ValuesIn(cases()), name_of_case);

TEST(ConvChoice, ShapesOfNetworksTakeTheKernelsThatAreMadeForThem) {
  const auto device = make_null_device(90);
  const auto chosen = [&](std::vector<Dim> x, std::vector<Dim> kernel, Attributes attributes) {
    Problem problem = problem_of(
        OpKind::conv, {"", {real(f16, std::move(x)), weight(f16, std::move(kernel))}, nhwc(std::move(attributes))});
    problem.target = device->target();
    return select_kernel(problem).kernel->name;
  };
  const Ints two{2, 2}, ones{1, 1, 1, 1};
  EXPECT_EQ(chosen({32, 224, 224, 3}, {64, 3, 7, 7}, {{"strides", two}, {"pads", Ints{3, 3, 3, 3}}}),
            "conv.few_channels");
  EXPECT_EQ(chosen({32, 56, 56, 64}, {64, 64, 3, 3}, {{"pads", ones}}), "conv.hopper");
  EXPECT_EQ(chosen({32, 56, 56, 64}, {256, 64, 1, 1}, {}), "conv.pointwise.hopper");
  EXPECT_EQ(chosen({32, 56, 56, 256}, {512, 256, 1, 1}, {{"strides", two}}), "conv.hopper");
  EXPECT_EQ(chosen({32, 56, 56, 144}, {144, 1, 3, 3}, {{"pads", ones}, {"group", std::int64_t{144}}}),
            "conv.depthwise");
  EXPECT_EQ(chosen({32, 56, 56, 36}, {36, 36, 3, 3}, {{"pads", ones}}), "conv.implicit");
  EXPECT_EQ(chosen({1, 1, 1, 1280}, {320, 1280, 1, 1}, {}), "conv.pointwise.gemv");
}

const Kernel& kernel_named(std::string_view name) {
  return **std::ranges::find(cuda::kernels_of(OpKind::conv), name, [](const Kernel* kernel) { return kernel->name; });
}

/// Tiles of the Hopper product, "m x n", that a kernel compiles for a batch of images.
std::vector<std::string> tiles_of(const Kernel& kernel, Dim batch, std::int64_t size, std::int64_t channels,
                                  std::int64_t outputs, std::int64_t window) {
  const auto device = make_null_device(90);
  const std::int64_t pad = window / 2;
  Problem problem = problem_of(OpKind::conv, {"",
                                              {real(f16, {std::move(batch), size, size, channels}),
                                               weight(f16, {outputs, channels, window, window})},
                                              nhwc({{"pads", Ints{pad, pad, pad, pad}}})});
  problem.target = device->target();
  problem.maximum.set(Symbol("T"), 32);
  std::vector<std::string> tiles;
  for (const cuda::Program& program : kernel.programs(problem, {})) {
    std::smatch found;
    if (std::regex_search(program.task, found, std::regex(R"(Hopper<.*block_m = (\d+), \.block_n = (\d+))")))
      tiles.push_back(found.str(1) + " x " + found.str(2));
  }
  return tiles;
}

// Three tiles for every number of places were 20 to 100 % slower for some: 33.8 us instead of 16.7, 24.7 instead
// of 18.0, 78 instead of 21.6 on an H200.
TEST(ConvChoice, TheTileThatSuitsIsCompiledWhereThePlacesAreKnown) {
  using Tiles = std::vector<std::string>;
  EXPECT_EQ(tiles_of(kernel_named("conv.hopper"), 32, 14, 256, 256, 3), Tiles{"128 x 128"});
  EXPECT_EQ(tiles_of(kernel_named("conv.hopper"), 32, 7, 512, 512, 3), Tiles{"64 x 128"});
  EXPECT_EQ(tiles_of(kernel_named("conv.pointwise.hopper"), 32, 56, 256, 128, 1), Tiles{"128 x 128"});
  EXPECT_GT(tiles_of(kernel_named("conv.hopper"), Dim::symbol("T"), 14, 256, 256, 3).size(), 1u);
}

TEST(ConvAsLinear, HasTheSameOperandsAndResults) {
  Problem conv =
      problem_of(OpKind::conv, {"",
                                {real(f16, {2, 9, 7, 64}), weight(f16, {72, 64, 3, 3}), {}, real(f16, {2, 4, 3, 72})},
                                nhwc({{"strides", Ints{2, 2}}, {"activation", "relu"}})});
  const Region region = followed(conv, {{OpKind::mul, TensorType{f16, {72}}}});
  const Region linear = cuda::conv_as_linear(region);
  verify(linear);
  ASSERT_EQ(linear.operands.size(), region.operands.size());
  EXPECT_EQ(linear.problem().to_string(), "linear(f16[2, 4, 3, 576], f16[72, 576], -) {out_dtype = \"\"}");
  EXPECT_EQ(linear.operators(), "linear + add + relu + mul");
  EXPECT_TRUE(linear.is_constant(1));
  EXPECT_EQ(linear.operand_type(3), region.operand_type(3));
  EXPECT_EQ(linear.operand_type(4), region.operand_type(4));
  EXPECT_FALSE(linear.has(2));
  ASSERT_EQ(linear.results.size(), 1u);
  EXPECT_EQ(linear.result_type(0), region.result_type(0));
}

/// Beside the references; operand `cut`, if there is one, lies in rows of one pixel more than it has.
void expect_region_agrees(const Region& region, const char* name, const std::vector<Fill>& fills, double scale,
                          TestDevice& gpu, int cut = -1) {
  const Kernel& kernel = kernel_named(name);
  ASSERT_EQ(decline_of(kernel, region), std::nullopt) << region.to_string();
  const std::vector<OwnedTensor> operands = make_operands(region, fills);
  std::vector<TensorView> views = views_of(operands);
  OwnedTensor wider;
  if (cut >= 0) {
    TensorView& x = views[static_cast<std::size_t>(cut)];
    wider = OwnedTensor(x.dtype, {x.shape[0], x.shape[1], x.shape[2] + 1, x.shape[3]});
    const TensorView part(wider.view.data, x.dtype, x.shape, wider.view.strides);
    for (std::int64_t e = 0; e < wider.view.elements(); ++e) store(wider.view, e, 1e4);
    for (std::int64_t e = 0; e < x.elements(); ++e) copy_element(x, e, part, e);
    x = part;
  }
  const std::vector<OwnedTensor> expected = run_references(region, views);
  for (const std::int64_t padding : {0, 3, 16}) {
    const std::vector<DeviceResult> results = run_region(region, views, kernel, padding, gpu);
    EXPECT_LE(largest_error(results[0].view, expected[0].view, scale), 1)
        << name << ", rows " << padding << " elements apart, " << region.to_string();
    EXPECT_TRUE(results[0].padding_untouched()) << name << ", rows " << padding << " elements apart";
  }
}

TEST(ConvRegion, SqueezeAndExcitation) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const std::vector<Fill> fills{normal(), normal(0.2), normal(), normal(0.2), normal()};
  for (const NamedRegion& named : squeezed_regions(gpu.device->target())) {
    if (decline_of(kernel_named("conv.single_pixels"), named.region))
      continue;  // weights that older GPUs' shared memory does not hold
    expect_region_agrees(named.region, "conv.single_pixels", fills, 0.1, gpu);
    expect_region_agrees(named.region, "conv.single_pixels", fills, 0.1, gpu, 0);
  }
}

TEST(ConvRegion, GateBeforeAConvolution) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  if (gpu.device->target()->compute_capability != 90) GTEST_SKIP() << "a kernel for Hopper";
  const std::vector<Fill> fills{uniform(-1, 1), normal(), normal(0.2), normal(), normal()};
  for (const NamedRegion& named : gated_regions(gpu.device->target())) {
    expect_region_agrees(named.region, "conv.gated.hopper", fills, 2, gpu);
    expect_region_agrees(named.region, "conv.gated.hopper", fills, 2, gpu, 1);
  }
}

TEST(ConvRegion, WhatTheyDecline) {
  const auto device = make_null_device(90);
  const Target* const target = device->target();
  const auto reason = [](const char* name, const Region& region) {
    return decline_of(kernel_named(name), region).value_or("taken");
  };
  const char *const pixels = "conv.single_pixels", *const gate = "conv.gated.hopper";
  EXPECT_EQ(reason(pixels, squeezed(f16, {2, 7, 7, 64}, 4, true, target)), "taken");
  EXPECT_EQ(reason(pixels, squeezed(f16, {2, 7, 7, 63}, 4, true, target)), "63 channels do not have whole 16 bytes");
  EXPECT_EQ(reason(pixels, squeezed(f32, {2, 7, 7, 4096}, 1024, true, target)).substr(0, 16), "its weights take");
  Region variable = squeezed(f16, {2, 7, 7, 64}, 4, true, target);
  variable.nodes[1].problem.constant_inputs = 0;
  EXPECT_EQ(reason(pixels, variable), "a weight is not constant, so it cannot be prepacked");
  Region leaving = squeezed(f16, {2, 7, 7, 64}, 4, true, target);
  leaving.results.push_back({0, 0});
  EXPECT_EQ(reason(pixels, leaving), "more than one value leaves");
  EXPECT_EQ(reason(gate, gated(f16, {2, 7, 7, 64}, 40, true, false, target)), "taken");
  EXPECT_EQ(reason(gate, gated(f32, {2, 7, 7, 64}, 40, true, false, target)), "no instruction multiplies f32 exactly");
  EXPECT_EQ(reason(gate, gated(f16, {2, 7, 7, 64}, 40, false, false, target, Rounding::fast)),
            "gated pixels are rounded to f16, which a fast edge is not");
  EXPECT_EQ(reason(gate, squeezed(f16, {2, 7, 7, 64}, 4, true, target)), "no gate is computed before the convolution");
}

}  // namespace
}  // namespace cermet
