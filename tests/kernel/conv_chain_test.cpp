// Convolutions one after the other in one kernel: the bits of kernels one after another.
#include <gtest/gtest.h>

#include "kernel/cpu/gemm/parts.hpp"
#include "op/schema/case_data.hpp"
#include "tests/kernel/type.hpp"
#include "tests/support/region_builder.hpp"
#include "tests/support/region_run.hpp"

namespace cermet {
namespace {

using Value = RegionBuilder::Value;

/// With the weights of all convolutions constant, which the last one is.
Region chain_of(const RegionBuilder& b) {
  Region region = b.build();
  for (RegionNode& node : region.nodes)
    if (node.problem.op->kind == OpKind::conv)
      region.anchor = static_cast<std::int32_t>(&node - region.nodes.data()), node.problem.constant_inputs |= 2;
  return region;
}

const Kernel& conv_named(std::string_view name) {
  for (const Kernel* kernel : cpu::kernels_of(OpKind::conv))
    if (kernel->name == name) return *kernel;
  throw std::runtime_error("no such kernel");
}

struct Image {
  std::int64_t samples, rows, columns, channels;
};

struct Windows {
  std::int64_t taps, stride, before, after, dilation = 1;
};

/// x, expanded to `channels`, convolved channel by channel.
Region expanded(const Image& x, std::int64_t channels, const Windows& w, std::optional<OpKind> function, bool biased) {
  RegionBuilder b(Rounding::strict);
  const auto bias = [&] { return biased ? b.operand(type(DType::f32, {channels})) : Value(); };
  const Value image = b.operand(type(DType::f32, {x.samples, x.rows, x.columns, x.channels})),
              first = b.operand(type(DType::f32, {channels, x.channels, 1, 1}));
  const Value larger = b.add(OpKind::conv, {image, first, bias()}, {{"layout", "nhwc"}});
  const Value made = function ? b.add(*function, {larger}) : larger;
  const Value second = b.operand(type(DType::f32, {channels, 1, w.taps, w.taps}));
  const Value last = b.add(OpKind::conv, {made, second, bias()},
                           {{"layout", "nhwc"},
                            {"group", channels},
                            {"strides", Ints{w.stride, w.stride}},
                            {"dilations", Ints{w.dilation, w.dilation}},
                            {"pads", Ints{w.before, w.before, w.after, w.after}}});
  b.result(function ? b.add(*function, {last}) : last);
  return chain_of(b);
}

void expect_expands(const Region& region, std::int64_t channels, bool biased) {
  ASSERT_EQ(conv_named("conv.expanded_depthwise").declines(region), std::nullopt) << region.to_string();
  const double scale = 4 + 0.2 * static_cast<double>(channels) + 8;
  const std::vector<Fill> fills = biased ? std::vector<Fill>{normal(), normal(0.2), normal(), normal(0.2), normal()}
                                         : std::vector<Fill>{normal(), normal(0.2), normal(0.2)};
  expect_region_conforms(region, fills, 1, scale);
}

TEST(ConvChain, DepthwiseOfAnExpandedImage) {
  const Windows windows[] = {{3, 1, 1, 1}, {3, 2, 1, 1},    {3, 2, 0, 1}, {5, 1, 2, 2},
                             {5, 2, 2, 2}, {3, 1, 2, 2, 2}, {7, 1, 3, 3}, {3, 4, 0, 0}};
  for (const Windows& w : windows)
    for (const std::int64_t channels : {16, 48, 96}) {
      expect_expands(expanded({2, 15, 17, 20}, channels, w, OpKind::silu, true), 20, true);
      expect_expands(expanded({1, 9, 8, 33}, channels, w, OpKind::relu, false), 33, false);
    }
}

/// Rows of 300 places of 32 channels are 37.5 KiB, so that a buffer holds few, which move as others are made.
TEST(ConvChain, DepthwiseOfManyStrips) {
  for (const Windows& w : {Windows{3, 1, 1, 1}, Windows{5, 2, 2, 2}, Windows{7, 1, 0, 0}, Windows{3, 5, 1, 1}})
    expect_expands(expanded({1, 41, 300, 4}, 32, w, std::nullopt, true), 4, true);
}

/// Images whose expansion conv.parts takes where there are tiles: in whole panels and not, in one strip and in several
/// of more bands than threads need.
TEST(ConvChain, DepthwiseOfAnImageExpandedByTiles) {
  const std::tuple<Image, std::int64_t, Windows, std::optional<OpKind>, bool> cases[] = {
      {{2, 13, 13, 64}, 208, {3, 1, 1, 1}, OpKind::silu, true},
      {{1, 65, 64, 32}, 96, {3, 2, 1, 1}, OpKind::relu, true},
      {{1, 12, 13, 96}, 288, {5, 1, 2, 2}, std::nullopt, false},
  };
  for (const auto& [x, channels, windows, function, biased] : cases) {
    const Region region = expanded(x, channels, windows, function, biased);
    const bool by_tiles = !conv_named("conv.parts").declines(Region(region.nodes[0].problem));
    EXPECT_EQ(by_tiles, !cpu::parts_decline());
    expect_expands(region, x.channels, biased);
  }
}

/// A convolution of windows, then a depthwise one. `x`: what the first one reads, channels last; `transposes`: it is
/// given with its channels in front.
Region after_windows(const Image& x, bool transposes, std::int64_t channels, std::int64_t stride) {
  RegionBuilder b(Rounding::strict);
  const Value given = b.operand(type(DType::f32, transposes ? Dims{x.samples, x.channels, x.rows, x.columns}
                                                            : Dims{x.samples, x.rows, x.columns, x.channels}));
  const Value image = transposes ? b.add(OpKind::transpose, {given}, {{"permutation", Ints{0, 2, 3, 1}}}) : given;
  const Value w1 = b.operand(type(DType::f32, {channels, x.channels, 3, 3})),
              b1 = b.operand(type(DType::f32, {channels}));
  const Value stem = b.add(OpKind::conv, {image, w1, b1},
                           {{"layout", "nhwc"}, {"strides", Ints{stride, stride}}, {"pads", Ints{1, 1, 1, 1}}});
  const Value w2 = b.operand(type(DType::f32, {channels, 1, 3, 3}));
  const Value last = b.add(OpKind::conv, {b.add(OpKind::silu, {stem}), w2},
                           {{"layout", "nhwc"}, {"group", channels}, {"pads", Ints{1, 1, 1, 1}}});
  b.result(b.add(OpKind::relu, {last}));
  return chain_of(b);
}

void expect_expands_windows(const Image& x, bool transposes, std::int64_t channels, std::int64_t stride) {
  const Region region = after_windows(x, transposes, channels, stride);
  ASSERT_EQ(conv_named("conv.expanded_depthwise").declines(region), std::nullopt) << region.to_string();
  const double terms = static_cast<double>(9 * x.channels);
  expect_region_conforms(region, {normal(), normal(0.2), normal(), normal(0.2)}, 1, 12 + 0.5 * terms);
}

/// The stem of a network.
TEST(ConvChain, DepthwiseAfterWindows) {
  for (const bool transposes : {true, false})
    for (const std::int64_t channels : {16, 48}) expect_expands_windows({2, 17, 30, 3}, transposes, channels, 2);
}

/// Copies of whole rows would be too large.
TEST(ConvChain, DepthwiseAfterPartsOfRows) { expect_expands_windows({1, 3, 701, 64}, false, 32, 2); }

TEST(ConvChain, DepthwiseDeclinesWhatItCannotExpand) {
  const auto reason = [](const Region& region) {
    return conv_named("conv.expanded_depthwise").declines(region).value_or("taken");
  };
  const Windows w{3, 1, 1, 1};
  EXPECT_EQ(reason(expanded({1, 9, 8, 20}, 40, w, OpKind::silu, true)), "the last 8 channels are less than 16");
  EXPECT_EQ(reason(expanded({1, 9, 8, 1040}, 32, w, OpKind::silu, true)),
            "silu before conv: its sums are too long, or of a multiple of 512 channels");
  EXPECT_EQ(reason(expanded({1, 9, 8, 512}, 32, w, OpKind::silu, true)),
            "silu before conv: its sums are too long, or of a multiple of 512 channels");
  Region variable = expanded({1, 9, 8, 20}, 32, w, OpKind::silu, true);
  variable.nodes[0].problem.constant_inputs = 0;
  EXPECT_EQ(reason(variable), "silu before conv: its weight is not constant, so it cannot be prepacked");
  Region alone = expanded({1, 9, 8, 20}, 32, w, OpKind::silu, true);
  EXPECT_EQ(reason(Region(alone.nodes[0].problem)), "nothing is expanded before it");
  EXPECT_EQ(reason(after_windows({1, 16, 16, 64}, false, 32, 1)),
            "silu before conv: alone it is no product with packed panels")
      << "Winograd's is first";
  Region leaving = expanded({1, 9, 8, 20}, 32, w, OpKind::silu, true);
  leaving.results.push_back({1, 0});
  EXPECT_EQ(reason(leaving), "others read the expanded image, too");
}

/// The gate of a squeeze-and-excitation block: mean, product, function, product, sigmoid.
Region squeezed(const Image& x, std::int64_t few, bool with_mean) {
  RegionBuilder b(Rounding::strict);
  const Value image = b.operand(type(DType::f32, {x.samples, x.rows, x.columns, x.channels}));
  const Value mean =
      with_mean ? b.add(OpKind::reduce_mean, {image}, {{"axes", Ints{1, 2}}, {"keepdims", true}}) : image;
  const Value w1 = b.operand(type(DType::f32, {few, x.channels, 1, 1})), b1 = b.operand(type(DType::f32, {few}));
  const Value less = b.add(OpKind::silu, {b.add(OpKind::conv, {mean, w1, b1}, {{"layout", "nhwc"}})});
  const Value w2 = b.operand(type(DType::f32, {x.channels, few, 1, 1})), b2 = b.operand(type(DType::f32, {x.channels}));
  b.result(b.add(OpKind::sigmoid, {b.add(OpKind::conv, {less, w2, b2}, {{"layout", "nhwc"}})}));
  return chain_of(b);
}

TEST(ConvChain, SqueezeAndExcitation) {
  // The last image is summed in slices.
  for (const Image& x : {Image{1, 14, 13, 96}, Image{3, 7, 7, 40}, Image{1, 1, 1, 1152}, Image{1, 26, 25, 70}})
    for (const std::int64_t few : {4, 48}) {
      const Region region = squeezed(x, few, true);
      ASSERT_EQ(conv_named("conv.single_pixels").declines(region), std::nullopt);
      expect_region_conforms(region, {normal(), normal(0.2), normal(), normal(0.2), normal()}, 1, 40);
    }
}

TEST(ConvChain, ProductsOfSinglePixelsWithoutAMean) {
  const Region region = squeezed({5, 1, 1, 70}, 12, false);
  ASSERT_EQ(conv_named("conv.single_pixels").declines(region), std::nullopt);
  expect_region_conforms(region, {normal(), normal(0.2), normal(), normal(0.2), normal()}, 1, 40);
}

/// A product of single pixels, applied to an image: a gate where nothing computes it with the convolution that reads
/// it.
Region gated(const Image& x, std::int64_t few, std::int64_t of_samples = 0) {
  RegionBuilder b(Rounding::strict);
  const Value pixel = b.operand(type(DType::f32, {of_samples ? of_samples : x.samples, 1, 1, few}));
  const Value w = b.operand(type(DType::f32, {x.channels, few, 1, 1})),
              bias = b.operand(type(DType::f32, {x.channels}));
  const Value gate = b.add(OpKind::sigmoid, {b.add(OpKind::conv, {pixel, w, bias}, {{"layout", "nhwc"}})});
  const Value image = b.operand(type(DType::f32, {x.samples, x.rows, x.columns, x.channels}));
  b.result(b.add(OpKind::relu, {b.add(OpKind::mul, {gate, image})}));
  return chain_of(b);
}

TEST(ConvChain, APixelIsAppliedToItsImage) {
  for (const Image& x : {Image{1, 14, 13, 96}, Image{3, 7, 5, 40}, Image{2, 1, 3, 33}, Image{0, 7, 7, 16}}) {
    const Region region = gated(x, 12);
    ASSERT_EQ(conv_named("conv.single_pixels").declines(region), std::nullopt);
    expect_region_conforms(region, {normal(), normal(0.2), normal(), normal()}, 1, 40);
  }
  const auto declines = conv_named("conv.single_pixels").declines;
  EXPECT_EQ(declines(gated({4, 7, 7, 16}, 12, 1)), "a part gives more than one pixel") << "one pixel for all samples";
  EXPECT_EQ(declines(gated({4, 1, 1, 16}, 12)), "nothing is computed before it, and it is applied to no image");
}

TEST(ConvChain, WhatComesBeforeAProductByTilesStaysApart) {
  for (const std::int64_t channels : {24, 64}) {  // tiles take 64
    RegionBuilder b(Rounding::strict);
    const Value image = b.operand(type(DType::f32, {1, channels, 28, 28})),
                weight = b.operand(type(DType::f32, {128, channels, 1, 1}));
    b.result(b.add(OpKind::conv, {b.add(OpKind::transpose, {image}, {{"permutation", Ints{0, 2, 3, 1}}}), weight},
                   {{"layout", "nhwc"}}));
    const Region region = chain_of(b);
    const bool by_tiles = !conv_named("conv.parts").declines(Region(region.problem()));
    EXPECT_EQ(by_tiles, channels == 64 && !cpu::parts_decline());
    EXPECT_EQ(conv_named("conv.packed").declines(region).has_value(), by_tiles);
  }
}

TEST(ConvChain, SinglePixelsDeclineImages) {
  const auto reason = [](const Region& region) {
    return conv_named("conv.single_pixels").declines(region).value_or("taken");
  };
  EXPECT_EQ(reason(squeezed({1, 2, 1, 32}, 12, false)),
            "a convolution has more than one pixel, channels in front or other types than float32");
  Region leaving = squeezed({1, 2, 2, 32}, 12, true);
  leaving.results.push_back({0, 0});
  EXPECT_EQ(reason(leaving), "more than one value leaves");
}

}  // namespace
}  // namespace cermet
