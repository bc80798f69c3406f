// Images: regions, boxes and blocks.
#include <algorithm>
#include <limits>

#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

/// A number that must be known, or what stands for it where it is not given.
double number_or(Lowering& l, std::size_t i, double fallback) {
  return l.has(i) && l.elements(l.in(i)) > 0 ? l.number_in(l.in(i)) : fallback;
}

}  // namespace

void lower_roi_align(Lowering& l) {
  l.set(0, l.op(OpKind::roi_align, {l.in(0), l.in(1), l.in(2)},
                {{"mode", l.text("mode", "avg")},
                 {"coordinate_transformation_mode",
                  l.text("coordinate_transformation_mode", l.version() < 16 ? "output_half_pixel" : "half_pixel")},
                 {"output_height", l.integer("output_height", 1)},
                 {"output_width", l.integer("output_width", 1)},
                 {"sampling_ratio", l.integer("sampling_ratio", 0)},
                 {"spatial_scale", l.number("spatial_scale", 1)}}));
}

void lower_non_max_suppression(Lowering& l) {
  const double most = std::clamp(number_or(l, 2, 0), 0.0, 0x1p31);
  const std::vector<Operand> found =
      l.ops(OpKind::non_max_suppression, {l.in(0), l.in(1)},
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
    l.expect(sizes.size() == static_cast<std::size_t>(l.rank(l.in(0))), "output_shape: expected {} sizes, found {}",
             l.rank(l.in(0)), sizes.size());
    sizes.erase(sizes.begin(), sizes.begin() + 2);
  }
  l.set(0, l.op(OpKind::max_unpool, {l.in(0), l.in(1)},
                {{"kernel", l.integers("kernel_shape")},
                 {"strides", l.integers("strides")},
                 {"pads", l.integers("pads")},
                 {"sizes", sizes}}));
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

}  // namespace cermet::onnx
