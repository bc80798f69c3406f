// Host halves of grid_sample and roi_align.
#include "kernel/cuda/device/image/points.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/image/positions.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/grid_sample.hpp"
#include "op/operands.hpp"
#include "op/roi_align.hpp"

namespace cermet::cuda::image_points_file {
namespace {

Decline declines(const Problem& p) {
  for (int a = 2; a < p.input(0).rank(); ++a)
    if (p.size(0, a) >= std::int64_t{1} << 30) return "an axis of 2^30 or more elements";
  return std::nullopt;
}

void sample_grid(const LaunchArgs& args, const grid::Rule& rule) {
  const TensorView &x = args.inputs[0], &grid = args.inputs[1], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const SpatialView to = spatial_view(y, false);
  const int axes = x.shape.rank() - 2;
  points::GridParams params{.x = x.data,
                            .grid = grid.data,
                            .y = y.data,
                            .from = spatial_tensor(spatial_view(x, false)),
                            .to = spatial_tensor(to),
                            .order = position_order(to, false),
                            .grid_batch = grid.strides[0],
                            .grid_stride = {},
                            .axes = axes,
                            .rule = rule};
  for (int a = 0; a < axes; ++a) params.grid_stride[3 - axes + a] = grid.strides[a + 1];
  args.queue->run(0, div_up(params.order.count, std::int64_t{points::threads}), params);
}

void align_regions(const LaunchArgs& args, const roi::Rule& rule) {
  const TensorView &x = args.inputs[0], &rois = args.inputs[1], &images = args.inputs[op::roi_align::batch_indices],
                   &y = args.outputs[0];
  if (y.elements() == 0) return;
  const SpatialView to = spatial_view(y, false);
  const points::RegionParams params{.x = x.data,
                                    .rois = rois.data,
                                    .images = images.data,
                                    .y = y.data,
                                    .from = spatial_tensor(spatial_view(x, false)),
                                    .to = spatial_tensor(to),
                                    .order = position_order(to, false),
                                    .batch = x.shape[0],
                                    .roi_stride = rois.strides[0],
                                    .wide_images = images.dtype == DType::i64,
                                    .rule = rule};
  args.queue->run(0, div_up(params.order.count, std::int64_t{points::threads}), params);
}

std::vector<Program> programs(const Problem& p, const char* task) {
  const points::Config config{.x = p.input(0).dtype, .points = p.input(1).dtype};
  return {{.header = "kernel/cuda/device/image/points.cuh",
           .task = fmt::format("cermet::points::{}<cermet::points::Config{}>", task, config_text(config)),
           .threads = points::threads}};
}

}  // namespace

extern const Kernel image_grid_sample;
const Kernel image_grid_sample{.name = "image.grid_sample",
                               .op = OpKind::grid_sample,
                               .summary = "a thread for each result",
                               .declines = declines,
                               .bind = [](const Problem& p) -> Launcher {
                                 return [rule = grid_rule(p.attributes)](const LaunchArgs& args) {
                                   sample_grid(args, rule);
                                 };
                               },
                               .programs = [](const Problem& p) { return programs(p, "GridTask"); }};
extern const Kernel image_roi_align;
const Kernel image_roi_align{.name = "image.roi_align",
                             .op = OpKind::roi_align,
                             .summary = "a thread for each result; NaN for images that there are not",
                             .declines = declines,
                             .bind = [](const Problem& p) -> Launcher {
                               return [rule = roi_rule(p.attributes)](const LaunchArgs& args) {
                                 align_regions(args, rule);
                               };
                             },
                             .programs = [](const Problem& p) { return programs(p, "RegionTask"); }};

}  // namespace cermet::cuda::image_points_file
