// Regions around convolutions that tests compile and run: squeeze and excitation, and a gate before a convolution.
#pragma once

#include "tests/support/pointwise_regions.hpp"

namespace cermet {

struct Image {
  std::int64_t samples, rows, columns, channels;
  Dims dims() const { return {samples, rows, columns, channels}; }
};

/// With the weights of all convolutions constant, the last of which is the anchor.
inline Region with_constant_weights(const RegionBuilder& b) {
  Region region = b.build();
  for (RegionNode& node : region.nodes)
    if (node.problem.op->kind == OpKind::conv)
      region.anchor = static_cast<std::int32_t>(&node - region.nodes.data()), node.problem.constant_inputs |= 2;
  return region;
}

/// The mean over an image, a product, SiLU, a product, sigmoid.
inline Region squeezed(DType t, const Image& x, std::int64_t few, bool with_mean, const Target* target,
                       Rounding rounding = Rounding::strict) {
  RegionBuilder b(rounding, target);
  const RegionBuilder::Value image = b.operand({t, x.dims()});
  const RegionBuilder::Value mean =
      with_mean ? b.add(OpKind::reduce_mean, {image}, {{"axes", Ints{1, 2}}, {"keepdims", true}}) : image;
  const RegionBuilder::Value w1 = b.operand({t, {few, x.channels, 1, 1}}), b1 = b.operand({t, {few}});
  const RegionBuilder::Value less = b.add(OpKind::silu, {b.add(OpKind::conv, {mean, w1, b1}, {{"layout", "nhwc"}})});
  const RegionBuilder::Value w2 = b.operand({t, {x.channels, few, 1, 1}}), b2 = b.operand({t, {x.channels}});
  b.result(b.add(OpKind::sigmoid, {b.add(OpKind::conv, {less, w2, b2}, {{"layout", "nhwc"}})}));
  return with_constant_weights(b);
}

/// An image times a gate, a convolution of single pixels and, if it is to be, a residual.
inline Region gated(DType t, const Image& x, std::int64_t outputs, bool residual, bool gate_first, const Target* target,
                    Rounding rounding = Rounding::strict) {
  RegionBuilder b(rounding, target);
  const RegionBuilder::Value gate = b.operand({t, {x.samples, 1, 1, x.channels}}), image = b.operand({t, x.dims()});
  const RegionBuilder::Value product =
      gate_first ? b.add(OpKind::mul, {gate, image}) : b.add(OpKind::mul, {image, gate});
  const RegionBuilder::Value weight = b.operand({t, {outputs, x.channels, 1, 1}}), bias = b.operand({t, {outputs}});
  const RegionBuilder::Value y = b.add(OpKind::conv, {product, weight, bias}, {{"layout", "nhwc"}});
  b.result(residual ? b.add(OpKind::add, {y, b.operand({t, {x.samples, x.rows, x.columns, outputs}})}) : y);
  return with_constant_weights(b);
}

/// Every type, with one block to a sample and with several, channels that fill a block's threads and that do not.
inline std::vector<NamedRegion> squeezed_regions(const Target* target) {
  using enum DType;
  return {{"few_samples", squeezed(f16, {1, 14, 13, 96}, 4, true, target)},
          {"odd_samples", squeezed(bf16, {3, 7, 7, 40}, 10, true, target)},
          {"many_samples", squeezed(f16, {200, 3, 3, 32}, 8, true, target)},
          {"wide", squeezed(f16, {32, 7, 7, 1152}, 48, true, target)},
          {"float32", squeezed(f32, {4, 9, 8, 240}, 10, true, target)},
          {"without_a_mean", squeezed(bf16, {5, 1, 1, 672}, 28, false, target)},
          {"fast", squeezed(f16, {4, 7, 7, 64}, 6, true, target, Rounding::fast)}};
}

/// Tiles that end within a sample and past several, reductions of less than a stage and of many.
inline std::vector<NamedRegion> gated_regions(const Target* target) {
  using enum DType;
  return {{"many_stages", gated(f16, {2, 7, 7, 1152}, 192, false, true, target)},
          {"residual", gated(f16, {3, 12, 11, 24}, 40, true, true, target)},
          {"small_images", gated(bf16, {70, 2, 2, 240}, 16, false, false, target)},
          {"many_tiles", gated(f16, {32, 14, 14, 96}, 24, true, false, target)},
          {"bf16", gated(bf16, {1, 5, 3, 64}, 320, true, true, target)}};
}

}  // namespace cermet
