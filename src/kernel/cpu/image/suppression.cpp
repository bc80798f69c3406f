// non_max_suppression: lists of each image and class in the workspace, then one after the other.
#include <algorithm>

#include "format/element.hpp"
#include "kernel/kernel.hpp"
#include "op/box_overlap.hpp"

namespace cermet::cpu {
namespace {

struct Suppression {
  std::int64_t most;
  double threshold, least;
  bool centered;
};

/// Kept boxes of lists [begin, end); `order` has room for the boxes of one. Each list has its boxes at kept + list *
/// most, and counts[list] of them.
void suppress(const LaunchArgs& args, const Suppression& rule, std::int64_t begin, std::int64_t end,
              std::int64_t* order, std::int64_t* kept, std::int64_t* counts) {
  const TensorView &boxes = args.inputs[0], &scores = args.inputs[1];
  const std::int64_t classes = scores.shape[1], count = scores.shape[2], most = std::min(rule.most, count);
  const Rows box_rows(boxes), score_rows(scores);
  for (std::int64_t list = begin; list < end; ++list) {
    const std::byte* row = score_rows.row(list);
    const auto score = [&](std::int64_t i) { return format::load_element(row, scores.dtype, i); };
    const auto box = [&](std::int64_t i) {
      const std::byte* at = box_rows.row(list / classes * count + i);
      const auto side = [&](int k) { return format::load_element(at, boxes.dtype, k); };
      return box_of(side(0), side(1), side(2), side(3), rule.centered);
    };
    std::int64_t candidates = 0, length = 0;
    std::int64_t* mine = kept + list * most;
    for (std::int64_t i = 0; i < count; ++i)
      if (score(i) > rule.least) order[candidates++] = i;
    std::sort(order, order + candidates,
              [&](std::int64_t i, std::int64_t j) { return score(i) != score(j) ? score(i) > score(j) : i < j; });
    for (std::int64_t i = 0; i < candidates && length < most; ++i) {
      const Box candidate = box(order[i]);
      if (std::none_of(mine, mine + length,
                       [&](std::int64_t j) { return overlaps(candidate, box(j), rule.threshold); }))
        mine[length++] = order[i];
    }
    counts[list] = length;
  }
}

void run(const LaunchArgs& args, const Suppression& rule) {
  const TensorView &scores = args.inputs[1], &selected = args.outputs[0];
  const std::int64_t lists = scores.shape[0] * scores.shape[1], count = scores.shape[2],
                     most = std::min(rule.most, count), threads = args.pool->size();
  auto* counts = reinterpret_cast<std::int64_t*>(args.workspace);
  std::int64_t *kept = counts + lists, *orders = kept + lists * most;
  args.pool->run([&](int thread) {
    suppress(args, rule, lists * thread / threads, lists * (thread + 1) / threads, orders + thread * count, kept,
             counts);
  });
  const Rows rows(selected);
  std::int64_t row = 0;
  const auto write = [&](std::int64_t image, std::int64_t type, std::int64_t box) {
    auto* to = reinterpret_cast<std::int64_t*>(rows.row(row++));
    to[0] = image;
    to[1] = type;
    to[2] = box;
  };
  for (std::int64_t list = 0; list < lists; ++list)
    for (std::int64_t i = 0; i < counts[list]; ++i)
      write(list / scores.shape[1], list % scores.shape[1], kept[list * most + i]);
  args.outputs[1].as<std::int64_t>()[0] = row;
  while (row < rows.count()) write(-1, -1, -1);
}

}  // namespace

extern const Kernel image_non_max_suppression;
const Kernel image_non_max_suppression{
    .name = "image.non_max_suppression",
    .op = OpKind::non_max_suppression,
    .summary = "sorts the boxes of each class, then compares each with those kept; classes spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [rule = Suppression{p.attributes.integer("max_output_boxes_per_class"),
                                 p.attributes.number("iou_threshold"), p.attributes.number("score_threshold"),
                                 p.attributes.flag("center_point_box")}](const LaunchArgs& args) { run(args, rule); };
    },
    .workspace = [](const Problem& p, int threads) -> std::int64_t {
      const std::int64_t lists = p.size(1, 0) * p.size(1, 1), count = p.size(1, 2),
                         most = std::min(p.attributes.integer("max_output_boxes_per_class"), count);
      return (lists * (1 + most) + threads * count) * static_cast<std::int64_t>(sizeof(std::int64_t));
    }};

}  // namespace cermet::cpu
