#include "op/roi_align.hpp"

#include "op/operands.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/reference.hpp"

namespace cermet::roi_align_op {

namespace in = op::roi_align;
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, in::x, 4);
  expect_rank(p, in::rois, 2);
  expect_dim(p, in::rois, 1, 4, "a box's x1, y1, x2 and y2");
  expect_dims(p, in::batch_indices, {dim_of(p, in::rois, 0)}, "one for each region");
  for (const char* name : {"output_height", "output_width"})
    if (const std::int64_t size = p.attributes.integer(name); size < 1 || size >= std::int64_t{1} << 24)
      bad_attribute(p, name, "a number in [1, 2^24)");
  if (const std::int64_t ratio = p.attributes.integer("sampling_ratio"); ratio < 0 || ratio > 4096)
    bad_attribute(p, "sampling_ratio", "a number in [0, 4096]");
  if (!(p.attributes.number("spatial_scale") > 0)) bad_attribute(p, "spatial_scale", "a positive number");
  for (int a = 2; a < 4; ++a)
    if (dim_of(p, in::x, a) == Dim(0))
      bad_operand(p, in::x, fmt::format("dimension {} of at least 1", a), p.input(in::x).to_string());
  return {{p.input(in::x).dtype,
           {dim_of(p, in::rois, 0), dim_of(p, in::x, 1), p.attributes.integer("output_height"),
            p.attributes.integer("output_width")}}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[in::x], &rois = call.inputs[in::rois], &y = call.outputs[0];
  const roi::Rule rule = roi_rule(call.attributes);
  const std::int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3], rows = y.shape[2],
                     columns = y.shape[3];
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t r = i / columns / rows / channels, c = i / columns / rows % channels;
    const std::int64_t n = load_index(call.inputs[in::batch_indices], r);
    check_index("roi_align", "2 (batch_indices)", n, x.shape[0]);
    const roi::Bins across = roi::bins_of(rule, load(rois, 4 * r), load(rois, 4 * r + 2), static_cast<int>(columns));
    const roi::Bins down = roi::bins_of(rule, load(rois, 4 * r + 1), load(rois, 4 * r + 3), static_cast<int>(rows));
    double sum = 0, most = 0, magnitude = 0;
    bool any = false;
    for (int v = 0; v < down.samples; ++v)
      for (int u = 0; u < across.samples; ++u) {
        const roi::Tap row = roi::tap_of(down, static_cast<int>(i / columns % rows), v, static_cast<int>(height));
        const roi::Tap column = roi::tap_of(across, static_cast<int>(i % columns), u, static_cast<int>(width));
        const bool inside = row.inside && column.inside;
        const auto term = [&](int h, int w, double weight) {
          return inside ? load(x, ((n * channels + c) * height + h) * width + w) * weight : 0.0;
        };
        const double terms[4] = {term(row.low, column.low, row.low_weight * column.low_weight),
                                 term(row.low, column.high, row.low_weight * column.high_weight),
                                 term(row.high, column.low, row.high_weight * column.low_weight),
                                 term(row.high, column.high, row.high_weight * column.high_weight)};
        for (const double value : terms) {
          sum += value;
          magnitude += std::abs(value);
          most = any ? std::max(most, value) : value;
          any = true;
        }
      }
    const double count = std::max(1, down.samples * across.samples);
    store(y, i, rule.maximum ? most : sum / count);
    note_magnitude(call, 0, i, rule.maximum ? std::abs(most) : magnitude / count);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  const Fill boxes = values({0, 0, 9, 9, 1.5, 2.25, 7.5, 4.75, 3, 3, 3, 3, -4, -2, 6, 20, 8, 8, 2, 1});
  for (const char* mode : {"avg", "max"})
    for (const char* transform : {"half_pixel", "output_half_pixel"})
      for (std::int64_t ratio : {0, 2})
        for (DType t : {f32, bf16, f16})
          list.push_back({fmt::format("{}_{}_{}_{}", mode, transform, ratio, name_of(t)),
                          {CaseOperand{{t, {2, 3, 10, 11}}}, CaseOperand{{f32, {5, 4}}, boxes},
                           CaseOperand{{i64, {5}}, values({0, 1, 1, 0, 0})}},
                          {{"mode", mode},
                           {"coordinate_transformation_mode", transform},
                           {"sampling_ratio", ratio},
                           {"output_height", 3},
                           {"output_width", 4}}});
  list.push_back({"scaled",
                  {CaseOperand{{f32, {1, 2, 6, 7}}, normal(), 3}, CaseOperand{{f32, {3, 4}}, uniform(0, 50), 1},
                   CaseOperand{{i32, {3}}, constant(0)}},
                  {{"spatial_scale", 0.125}, {"output_height", 2}, {"output_width", 2}}});
  list.push_back({"defaults",
                  {CaseOperand{{f32, {1, 2, 6, 7}}}, CaseOperand{{f32, {3, 4}}, uniform(0, 5)},
                   CaseOperand{{i64, {3}}, constant(0)}}});
  list.push_back(
      {"no_regions", {CaseOperand{{f32, {1, 2, 6, 7}}}, CaseOperand{{f32, {0, 4}}}, CaseOperand{{i64, {0}}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Images",
      .summary = "Features of regions, averaged or the largest over samples between pixels",
      .semantics =
          "Region r is the box rois[r] = (x1, y1, x2, y2) * spatial_scale of image batch_indices[r], less 0.5 with "
          "half_pixel; without, it is at least 1 wide "
          "and high. It is divided into output_height x output_width bins, each with sampling_ratio^2 evenly spaced "
          "samples, or ceil(size of a bin) along each "
          "axis where that is 0. A sample is a bilinear combination of four elements: 0 outside [-1, height] x [-1, "
          "width], at the border beyond the outer "
          "centres. avg: the mean of the samples. max: the largest of their weighted elements, one by one, as in ONNX. "
          "0 where there are no samples. "
          "Coordinates "
          "are float64, sums float32.",
      .inputs = {{"x", dtypes::real, "[N, C, H, W]", "images", Mapping::barrier},
                 {"rois", dtypes::real, "[R, 4]", "boxes", Mapping::one_to_many},
                 {"batch_indices", dtypes::index, "[R]", "their images", Mapping::one_to_many}},
      .outputs = {{"y", dtypes::real, "[R, C, output_height, output_width]", "features"}},
      .attributes = {{"mode", std::string("avg"), "what is made of samples", {"avg", "max"}},
                     {"coordinate_transformation_mode",
                      std::string("half_pixel"),
                      "whether boxes are shifted by half a pixel",
                      {"half_pixel", "output_half_pixel"}},
                     {"output_height", 1, "bins of a region, down"},
                     {"output_width", 1, "bins of a region, across"},
                     {"sampling_ratio", 0, "samples of a bin along each axis; 0: enough for the region"},
                     {"spatial_scale", 1.0, "scale of the boxes"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) { return 32.0 * static_cast<double>(p.outputs[0].elements().value(p.maximum)); },
      // As many samples as a region that is all of the image has.
      .rounding_depth =
          [](const Problem& p) {
            const double ratio = static_cast<double>(p.attributes.integer("sampling_ratio"));
            return 16 + 4 * (ratio > 0 ? ratio * ratio
                                       : static_cast<double>(p.size(0, 2)) * static_cast<double>(p.size(0, 3)));
          },
      .cases = cases,
  };
}

}  // namespace cermet::roi_align_op

namespace cermet {

roi::Rule roi_rule(const Attributes& attributes) {
  return {attributes.number("spatial_scale"), attributes.text("coordinate_transformation_mode") == "half_pixel",
          static_cast<int>(attributes.integer("sampling_ratio")), attributes.text("mode") == "max"};
}

}  // namespace cermet
