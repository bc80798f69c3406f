// Images: sampling, regions, boxes, and rearrangements of blocks.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

/// A number that must be known, or what stands for it where it is not given.
double number_or(Lowering& l, std::size_t i, double fallback) { return l.has(i) && l.elements(l.in(i)) > 0 ? l.number_in(l.in(i)) : fallback; }

}  // namespace

/// Points of a grid over [-1, 1] as (x, y, 1) or (x, y, z, 1), times theta.
void lower_affine_grid(Lowering& l) {
  const Operand theta = l.in(0);
  const Ints size = l.ints_in(l.in(1));
  const int axes = static_cast<int>(size.size()) - 2;
  l.expect((axes == 2 || axes == 3) && l.rank(theta) == 3 && l.size(theta, 1) == axes && l.size(theta, 2) == axes + 1,
           "expected theta [N, 2, 3] and 4 sizes, or [N, 3, 4] and 5, found {} and {}", l.type(theta).to_string(), size.size());
  const bool align = l.integer("align_corners", 0) != 0;
  const Ints places(size.begin() + 2, size.end());
  std::int64_t count = 1;
  for (const std::int64_t n : places) count *= n;
  Floats points(static_cast<std::size_t>(count * (axes + 1)), 1);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t a = axes - 1, rest = i; a >= 0; --a) {
      const std::int64_t n = places[static_cast<std::size_t>(a)];
      const double step = 2 / static_cast<double>(align ? std::max<std::int64_t>(n - 1, 1) : n);
      points[static_cast<std::size_t>(i * (axes + 1) + axes - 1 - a)] = -1 + (align ? 0 : step / 2) + static_cast<double>(rest % n) * step;
      rest /= n;
    }
  if (count == 0) points.assign(1, 0);
  const Operand base = count == 0 ? l.filled({0, axes + 1}, DType::f32, 0) : l.reshape(l.vector(DType::f32, points), {count, axes + 1});
  const Operand grid = l.op(OpKind::matmul, {base, theta}, {{"transpose_b", true}, {"out_dtype", std::string(name_of(l.dtype(theta)))}});  // [N, points, axes]
  Dims dims{l.dim(theta, 0)};
  dims.insert(dims.end(), places.begin(), places.end());
  dims.push_back(axes);
  l.set(0, l.reshape(grid, dims));
}

void lower_grid_sample(Lowering& l) {
  std::string mode = l.text("mode", "linear");
  if (mode == "bilinear") mode = "linear";  // names before opset 20
  if (mode == "bicubic") mode = "cubic";
  l.set(0, l.op(OpKind::grid_sample, {l.in(0), l.in(1)},
                {{"mode", mode}, {"padding_mode", l.text("padding_mode", "zeros")}, {"align_corners", l.integer("align_corners", 0) != 0}}));
}

void lower_roi_align(Lowering& l) {
  l.set(0, l.op(OpKind::roi_align, {l.in(0), l.in(1), l.in(2)},
                {{"mode", l.text("mode", "avg")},
                 {"coordinate_transformation_mode", l.text("coordinate_transformation_mode", l.version() < 16 ? "output_half_pixel" : "half_pixel")},
                 {"output_height", l.integer("output_height", 1)},
                 {"output_width", l.integer("output_width", 1)},
                 {"sampling_ratio", l.integer("sampling_ratio", 0)},
                 {"spatial_scale", l.number("spatial_scale", 1)}}));
}

void lower_non_max_suppression(Lowering& l) {
  const double most = std::clamp(number_or(l, 2, 0), 0.0, 0x1p31);
  const std::vector<Operand> found = l.ops(OpKind::non_max_suppression, {l.in(0), l.in(1)},
                                           {{"max_output_boxes_per_class", static_cast<std::int64_t>(most)},
                                            {"iou_threshold", number_or(l, 3, 0)},
                                            {"score_threshold", number_or(l, 4, -std::numeric_limits<double>::infinity())},
                                            {"center_point_box", l.integer("center_point_box", 0) != 0}});
  l.set(0, l.slice(found[0], 0, 0, l.ints_in(found[1]).at(0)));
}

void lower_col2im(Lowering& l) {
  l.set(0, l.op(OpKind::col2im, {l.in(0)},
                {{"image_shape", l.ints_in(l.in(1))},
                 {"kernel", l.ints_in(l.in(2))},
                 {"strides", l.integers("strides")},
                 {"pads", l.integers("pads")},
                 {"dilations", l.integers("dilations")}}));
}

void lower_max_unpool(Lowering& l) {
  Ints sizes;
  if (l.has(2)) {
    sizes = l.ints_in(l.in(2));
    l.expect(sizes.size() == static_cast<std::size_t>(l.rank(l.in(0))), "output_shape: expected {} sizes, found {}", l.rank(l.in(0)), sizes.size());
    sizes.erase(sizes.begin(), sizes.begin() + 2);
  }
  l.set(0, l.op(OpKind::max_unpool, {l.in(0), l.in(1)},
                {{"kernel", l.integers("kernel_shape")}, {"strides", l.integers("strides")}, {"pads", l.integers("pads")}, {"sizes", sizes}}));
}

void lower_deform_conv(Lowering& l) {
  std::vector<Operand> operands{l.in(0), l.in(1), l.in(2), l.in_or_none(3), l.in_or_none(4)};
  l.set(0, l.op(OpKind::deform_conv, operands,
                {{"strides", l.integers("strides")},
                 {"pads", l.integers("pads")},
                 {"dilations", l.integers("dilations")},
                 {"groups", l.integer("group", 1)},
                 {"offset_groups", l.integer("offset_group", 1)}}));
}

/// [N, blocks * C, H, W] as [N, C, H * b, W * b]; DCR has the blocks' rows and columns before the channels, CRD behind them.
void lower_depth_to_space(Lowering& l) {
  const Operand x = l.in(0);
  l.expect(l.rank(x) == 4, "expected 4 dimensions, found {}", l.type(x).to_string());
  const std::int64_t block = l.integer("blocksize", 0);
  const Dims d = l.dims(x);
  const auto channels = block > 0 ? exact_quotient(d[1], block * block) : std::nullopt;
  l.expect(channels.has_value(), "attribute blocksize: expected a number whose square divides {} channels, found {}", d[1].to_string(), block);
  const bool blocks_first = l.text("mode", "DCR") == "DCR";
  const Operand y = blocks_first ? l.transpose(l.reshape(x, {d[0], block, block, *channels, d[2], d[3]}), {0, 3, 4, 1, 5, 2})
                                 : l.transpose(l.reshape(x, {d[0], *channels, block, block, d[2], d[3]}), {0, 1, 4, 2, 5, 3});
  l.set(0, l.reshape(y, {d[0], *channels, d[2] * block, d[3] * block}));
}

void lower_space_to_depth(Lowering& l) {
  const Operand x = l.in(0);
  l.expect(l.rank(x) == 4, "expected 4 dimensions, found {}", l.type(x).to_string());
  const std::int64_t block = l.integer("blocksize", 0);
  const Dims d = l.dims(x);
  const auto height = block > 0 ? exact_quotient(d[2], block) : std::nullopt, width = block > 0 ? exact_quotient(d[3], block) : std::nullopt;
  l.expect(height && width, "attribute blocksize: expected a divisor of {} and {}, found {}", d[2].to_string(), d[3].to_string(), block);
  const bool blocks_first = l.text("mode", "DCR") == "DCR";
  const Operand y = l.transpose(l.reshape(x, {d[0], d[1], *height, block, *width, block}), blocks_first ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4});
  l.set(0, l.reshape(y, {d[0], d[1] * block * block, *height, *width}));
}

void lower_upsample(Lowering& l) {
  const Operand x = l.in(0);
  const Floats scales = l.version() < 9 ? l.numbers("scales") : l.numbers_in(l.in(1));
  l.expect(scales.size() == static_cast<std::size_t>(l.rank(x)), "scales: expected {}, found {}", l.rank(x), scales.size());
  l.set(0, l.op(OpKind::resize, {x},
                {{"mode", l.text("mode", "nearest")}, {"scales", scales}, {"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}}));
}

void lower_center_crop_pad(Lowering& l) {
  Operand x = l.in(0);
  const Ints shape = l.ints_in(l.in(1));
  Ints axes = l.integers("axes");
  if (axes.empty())
    for (int a = 0; a < l.rank(x); ++a) axes.push_back(a);
  l.expect(axes.size() == shape.size(), "shape: expected {} sizes, found {}", axes.size(), shape.size());
  Ints pads(2 * static_cast<std::size_t>(l.rank(x)));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = l.axis(axes[i], l.rank(x));
    const std::int64_t more = shape[i] - l.size(x, axis);
    if (more < 0) x = l.slice(x, axis, -more / 2, -more / 2 + shape[i]);
    if (more <= 0) continue;
    pads[static_cast<std::size_t>(axis)] = more / 2;
    pads[static_cast<std::size_t>(axis + l.rank(x))] = more - more / 2;
  }
  if (std::ranges::any_of(pads, [](std::int64_t p) { return p > 0; })) x = l.op(OpKind::pad, {x}, {{"pads", pads}});
  l.set(0, x);
}

}  // namespace cermet::onnx
