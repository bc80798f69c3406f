#include "op/pool_window.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/reference.hpp"

namespace cermet::col2im_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, 0, 3);
  const Ints& image = p.attributes.integers("image_shape");
  const std::size_t axes = image.size();
  if (axes > 3) bad_attribute(p, "image_shape", "at most 3 entries");
  expect_entries(p, "image_shape", axes, 1);
  for (const char* name : {"kernel", "strides", "dilations"}) expect_entries(p, name, axes, 1);
  expect_entries(p, "pads", 2 * axes, 0);
  const ImageBlocks blocks = image_blocks(p.attributes);
  for (std::size_t a = 0; a < 3; ++a)
    if (blocks.count[a] < 1) bad_attribute(p, "kernel", "blocks that fit the image with its padding");
  const std::int64_t taps = blocks.window.kernel[0] * blocks.window.kernel[1] * blocks.window.kernel[2],
                     count = blocks.count[0] * blocks.count[1] * blocks.count[2];
  expect_dim(p, 0, 2, count, "blocks in the image");
  const std::optional<Dim> channels = exact_quotient(dim_of(p, 0, 1), taps);
  if (!channels)
    bad_operand(p, 0, fmt::format("a dimension 1 that {} elements of a block divide", taps), p.input(0).to_string());
  Dims dims{dim_of(p, 0, 0), *channels};
  dims.insert(dims.end(), image.begin(), image.end());
  return {{p.input(0).dtype, std::move(dims)}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const ImageBlocks blocks = image_blocks(call.attributes);
  const PoolWindow& w = blocks.window;
  const std::int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2],
                     pixels = blocks.image[0] * blocks.image[1] * blocks.image[2], count = x.shape[2];
  std::vector<double> sums(static_cast<std::size_t>(y.elements())), magnitudes(sums);
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const std::int64_t plane = i / count / taps;
    const Spatial tap = position_of(w.kernel, i / count % taps), block = position_of(blocks.count, i % count);
    Spatial at;
    bool inside = true;
    for (std::size_t a = 0; a < 3; ++a) {
      at[a] = block[a] * w.stride[a] - w.before[a] + tap[a] * w.dilation[a];
      inside = inside && at[a] >= 0 && at[a] < blocks.image[a];
    }
    if (!inside) continue;
    const auto to =
        static_cast<std::size_t>(plane * pixels + (at[0] * blocks.image[1] + at[1]) * blocks.image[2] + at[2]);
    sums[to] += load(x, i);
    magnitudes[to] += std::abs(load(x, i));
  }
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    store(y, i, sums[static_cast<std::size_t>(i)]);
    note_magnitude(call, 0, i, magnitudes[static_cast<std::size_t>(i)]);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  for (DType t : {f32, bf16, f16})
    list.push_back({std::string(name_of(t)),
                    {CaseOperand{{t, {2, 27, 20}}}},
                    {{"image_shape", Ints{6, 7}}, {"kernel", Ints{3, 3}}}});
  list.push_back(
      {"strides",
       {CaseOperand{{f32, {1, 4, 9}}}},
       {{"image_shape", Ints{5, 6}}, {"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"pads", Ints{0, 0, 1, 1}}}});
  list.push_back({"gaps",
                  {CaseOperand{{f32, {1, 4, 4}}}},
                  {{"image_shape", Ints{5, 6}}, {"kernel", Ints{2, 2}}, {"strides", Ints{3, 3}}}});
  list.push_back(
      {"dilations",
       {CaseOperand{{f32, {1, 12, 5}}}},
       {{"image_shape", Ints{6, 6}}, {"kernel", Ints{2, 3}}, {"dilations", Ints{1, 3}}, {"pads", Ints{0, 1, 0, 0}}}});
  list.push_back({"pads",
                  {CaseOperand{{f32, {2, 5, 15}}, normal(), 2}},
                  {{"image_shape", Ints{5, 5}}, {"kernel", Ints{1, 5}}, {"pads", Ints{0, 1, 0, 1}}}});
  list.push_back({"one_axis", {CaseOperand{{f32, {3, 8, 8}}}}, {{"image_shape", Ints{11}}, {"kernel", Ints{4}}}});
  list.push_back(
      {"three_axes", {CaseOperand{{f32, {1, 10, 12}}}}, {{"image_shape", Ints{4, 5, 3}}, {"kernel", Ints{1, 5, 1}}}});
  list.push_back({"no_axes", {CaseOperand{{f32, {2, 3, 1}}}}});
  list.push_back({"empty", {CaseOperand{{f32, {0, 4, 4}}}}, {{"image_shape", Ints{3, 3}}, {"kernel", Ints{2, 2}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Convolution and pooling",
      .summary = "An image from the blocks that a convolution slides over, added where they overlap",
      .semantics =
          "Blocks of `kernel` elements slide over an image with padding as windows do over x in max_pool, without "
          "ceil_mode: L in all, row by row. y[n, c, i] "
          "is "
          "the sum of x[n, c * K + k, l] over the elements k of blocks l that lie at i, K elements in a block, row by "
          "row; in float32 and any order; 0 where "
          "none "
          "does.",
      .inputs = {{"x", dtypes::real, "[N, C * K, L]", "blocks", Mapping::many_to_many}},
      .outputs = {{"y", dtypes::real, "[N, C, ..]", "images"}},
      .attributes = {{"image_shape", Ints{}, "spatial sizes of y, up to three"},
                     {"kernel", Ints{}, "size of a block along each spatial axis; ones where empty"},
                     {"strides", Ints{}, "steps between blocks; ones where empty"},
                     {"pads", Ints{}, "padding in front of each spatial axis, then behind each; none where empty"},
                     {"dilations", Ints{}, "steps between elements of a block; ones where empty"}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .rounding_depth =
          [](const Problem& p) {
            const Spatial kernel = image_blocks(p.attributes).window.kernel;
            return static_cast<double>(kernel[0] * kernel[1] * kernel[2]);
          },
      .cases = cases,
  };
}

}  // namespace cermet::col2im_op

namespace cermet {

ImageBlocks image_blocks(const Attributes& attributes) {
  const Ints &image = attributes.integers("image_shape"), &pads = attributes.integers("pads");
  ImageBlocks blocks;
  const std::size_t axes = image.size();
  set_spatial(blocks.image, image, axes);
  set_spatial(blocks.window.kernel, attributes.integers("kernel"), axes);
  set_spatial(blocks.window.stride, attributes.integers("strides"), axes);
  set_spatial(blocks.window.dilation, attributes.integers("dilations"), axes);
  set_spatial(blocks.window.before, pads, axes);
  set_spatial(blocks.window.after, pads, axes, axes);
  const PoolWindow& w = blocks.window;
  for (std::size_t a = 0; a < 3; ++a) {
    const std::int64_t slack = blocks.image[a] + w.before[a] + w.after[a] - ((w.kernel[a] - 1) * w.dilation[a] + 1);
    blocks.count[a] = slack < 0 ? 0 : slack / w.stride[a] + 1;
  }
  return blocks;
}

}  // namespace cermet
