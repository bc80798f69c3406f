#include <algorithm>

#include "op/box_overlap.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::non_max_suppression_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, 0, 3);
  expect_dim(p, 0, 2, 4, "a box");
  expect_rank(p, 1, 3);
  expect_dim(p, 1, 0, dim_of(p, 0, 0), "B of boxes");
  expect_dim(p, 1, 2, dim_of(p, 0, 1), "S of boxes");
  const std::int64_t most = p.attributes.integer("max_output_boxes_per_class");
  if (most < 0) bad_attribute(p, "max_output_boxes_per_class", "a non-negative number");
  for (const char* name : {"iou_threshold", "score_threshold"})
    if (std::isnan(p.attributes.number(name))) bad_attribute(p, name, "a number");
  return {{DType::i64, {dim_of(p, 0, 0) * dim_of(p, 1, 1) * dim_min(dim_of(p, 0, 1), most), 3}}, {DType::i64, {1}}};
}

void reference(const ReferenceCall& call) {
  const TensorView &boxes = call.inputs[0], &scores = call.inputs[1], &selected = call.outputs[0];
  const std::int64_t classes = scores.shape[1], count = scores.shape[2],
                     most = call.attributes.integer("max_output_boxes_per_class");
  const double threshold = call.attributes.number("iou_threshold"), least = call.attributes.number("score_threshold");
  const bool centered = call.attributes.flag("center_point_box");
  std::int64_t row = 0;
  for (std::int64_t list = 0; list < scores.shape[0] * classes; ++list) {
    const std::int64_t b = list / classes;
    const auto box = [&](std::int64_t i) {
      const std::int64_t at = (b * count + i) * 4;
      return box_of(load(boxes, at), load(boxes, at + 1), load(boxes, at + 2), load(boxes, at + 3), centered);
    };
    std::vector<std::int64_t> order, kept;
    for (std::int64_t i = 0; i < count; ++i)
      if (load(scores, list * count + i) > least) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
      return load(scores, list * count + i) > load(scores, list * count + j);
    });
    for (const std::int64_t i : order) {
      if (static_cast<std::int64_t>(kept.size()) == most) break;
      if (std::any_of(kept.begin(), kept.end(), [&](std::int64_t j) { return overlaps(box(i), box(j), threshold); }))
        continue;
      kept.push_back(i);
      store_integer(selected, row * 3, b);
      store_integer(selected, row * 3 + 1, list % classes);
      store_integer(selected, row++ * 3 + 2, i);
    }
  }
  store_integer(call.outputs[1], 0, row);
  for (std::int64_t i = row * 3; i < selected.elements(); ++i) store_integer(selected, i, -1);
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  for (bool centered : {false, true})
    for (DType t : {f32, bf16, f16}) {
      const auto add = [&](const std::string& name, Dims boxes, Dims scores, Attributes attributes,
                           Fill score = uniform(0, 1)) {
        attributes.set("center_point_box", centered);
        list.push_back({fmt::format("{}_{}{}", name, name_of(t), centered ? "_centered" : ""),
                        {CaseOperand{{t, std::move(boxes)}, uniform(0, 4), 2},
                         CaseOperand{{t, std::move(scores)}, std::move(score), 1}},
                        std::move(attributes)});
      };
      add("some", {2, 40, 4}, {2, 3, 40},
          {{"max_output_boxes_per_class", 7}, {"iou_threshold", 0.3}, {"score_threshold", 0.2}});
      add("all", {1, 300, 4}, {1, 2, 300}, {{"max_output_boxes_per_class", 1000}, {"iou_threshold", 0.5}});
      add("ties", {1, 50, 4}, {1, 2, 50}, {{"max_output_boxes_per_class", 50}, {"iou_threshold", 0.1}}, integers(0, 3));
      add("no_overlap_allowed", {1, 30, 4}, {1, 1, 30}, {{"max_output_boxes_per_class", 30}});
      add("none_wanted", {1, 6, 4}, {1, 2, 6}, {{"iou_threshold", 0.5}});
      add("none_good", {2, 6, 4}, {2, 2, 6}, {{"max_output_boxes_per_class", 3}, {"score_threshold", 2.0}});
      add("nan", {1, 8, 4}, {1, 1, 8}, {{"max_output_boxes_per_class", 8}, {"iou_threshold", 1.0}},
          values({0.5, NAN, 1, INFINITY, -1, -INFINITY, 0.25, 2}));
      add("no_boxes", {2, 0, 4}, {2, 3, 0}, {{"max_output_boxes_per_class", 3}});
    }
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Images",
      .summary = "The best boxes that do not overlap better ones",
      .semantics =
          "For each image and class: boxes whose score is above score_threshold, by falling score (equal ones by "
          "rising index), each kept unless its "
          "intersection "
          "over union with one kept before is above iou_threshold, until max_output_boxes_per_class are kept. selected "
          "has a row (image, class, box) for each "
          "kept box, by image, class and rank, then rows of -1; count[0] says how many are kept. Boxes are two "
          "opposite corners in any order, or with "
          "center_point_box a centre, a width and a height; those without an area overlap nothing. Areas are float64.",
      .inputs = {{"boxes", dtypes::real, "[B, S, 4]", "boxes", Mapping::barrier},
                 {"scores", dtypes::real, "[B, C, S]", "scores by class", Mapping::barrier}},
      .outputs = {{"selected", {DType::i64}, "[B * C * min(S, max_output_boxes_per_class), 3]", "kept boxes"},
                  {"count", {DType::i64}, "[1]", "how many there are"}},
      .attributes = {{"max_output_boxes_per_class", 0, "most boxes that are kept for a class"},
                     {"iou_threshold", 0.0, "most intersection over union of two boxes that are kept"},
                     {"score_threshold", -INFINITY, "what a score must exceed"},
                     {"center_point_box", false, "boxes are (x, y, width, height) of their centre and size"}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return 16.0 * static_cast<double>(p.input(1).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem&) { return 0.0; },
      .cases = cases,
  };
}

}  // namespace cermet::non_max_suppression_op
