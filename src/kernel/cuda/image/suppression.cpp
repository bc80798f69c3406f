// Host half of non_max_suppression.
#include "kernel/cuda/device/image/suppression.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::image_suppression_file {
namespace {

struct Rule {
  std::int64_t most;
  double threshold, least;
  bool centered;
};

void launch(const LaunchArgs& args, const Rule& rule) {
  const TensorView &boxes = args.inputs[0], &scores = args.inputs[1], &selected = args.outputs[0];
  const std::int64_t lists = scores.shape[0] * scores.shape[1], size = scores.shape[2],
                     most = std::min(rule.most, size);
  auto* counts = reinterpret_cast<std::int64_t*>(args.workspace);
  const suppression::Params params{.boxes = boxes.data,
                                   .scores = scores.data,
                                   .selected = selected.as<std::int64_t>(),
                                   .count = args.outputs[1].as<std::int64_t>(),
                                   .kept = counts + lists,
                                   .counts = counts,
                                   .gone = reinterpret_cast<std::uint8_t*>(counts + lists * (1 + most)),
                                   .lists = lists,
                                   .classes = scores.shape[1],
                                   .size = size,
                                   .most = most,
                                   .box_strides = {boxes.strides[0], boxes.strides[1]},
                                   .score_strides = {scores.strides[0], scores.strides[1]},
                                   .row_stride = selected.strides[0],
                                   .threshold = rule.threshold,
                                   .least = rule.least,
                                   .centered = rule.centered};
  args.queue->run(0, lists, params);
  args.queue->run(1, lists + 1, params);
}

}  // namespace

extern const Kernel image_non_max_suppression;
const Kernel image_non_max_suppression{
    .name = "image.non_max_suppression",
    .op = OpKind::non_max_suppression,
    .summary = "a block for each class finds the best box that is left, as often as boxes are wanted",
    .bind = [](const Problem& p) -> Launcher {
      return [rule = Rule{p.attributes.integer("max_output_boxes_per_class"), p.attributes.number("iou_threshold"),
                          p.attributes.number("score_threshold"),
                          p.attributes.flag("center_point_box")}](const LaunchArgs& args) { launch(args, rule); };
    },
    .workspace = [](const Problem& p, int) -> std::int64_t {
      const std::int64_t lists = p.size(1, 0) * p.size(1, 1), size = p.size(1, 2),
                         most = std::min(p.attributes.integer("max_output_boxes_per_class"), size);
      return lists * (1 + most) * 8 + lists * size;
    },
    .programs = [](const Problem& p) -> std::vector<Program> {
      const std::string header = "kernel/cuda/device/image/suppression.cuh";
      return {{.header = header,
               .task = fmt::format(
                   "cermet::suppression::SelectTask<cermet::suppression::Config{{.boxes = {}, .scores = {}}}>",
                   device_name(p.input(0).dtype), device_name(p.input(1).dtype)),
               .threads = suppression::threads,
               .shared_bytes = suppression::threads / 32 * 16},
              {.header = header, .task = "cermet::suppression::GatherTask", .threads = suppression::threads}};
    }};

}  // namespace cermet::cuda::image_suppression_file
