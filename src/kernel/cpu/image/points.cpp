// grid_sample and roi_align: where to read is found once for all channels.
#include <algorithm>

#include "format/element.hpp"
#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/index_list.hpp"
#include "kernel/cpu/number.hpp"
#include "kernel/kernel.hpp"
#include "op/grid_sample.hpp"
#include "op/operands.hpp"
#include "op/pool_window.hpp"
#include "op/roi_align.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cpu {
namespace {

/// Points [begin, end) of all samples, every channel of each.
template <class T>
void sample_points(const LaunchArgs& args, const grid::Rule& rule, std::int64_t begin, std::int64_t end) {
  const TensorView& points = args.inputs[1];
  const SpatialView x = spatial_view(args.inputs[0], false), y = spatial_view(args.outputs[0], false);
  const Rows coordinates(points);
  const int axes = args.inputs[0].shape.rank() - 2;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t n = i / y.positions();
    const Spatial at = position_of(y.size, i % y.positions());
    const std::byte* row = coordinates.row(i);
    grid::Taps taps[3] = {{1, {0}, {1}}, {1, {0}, {1}}, {1, {0}, {1}}};
    for (int a = 0; a < axes; ++a)
      taps[2 - a] = grid::taps_at(rule, format::load_element(row, points.dtype, a),
                                  static_cast<int>(x.size[static_cast<std::size_t>(2 - a)]));
    for (std::int64_t c = 0; c < y.channels; ++c) {
      const T* from = args.inputs[0].as<const T>() + x.offset(n, c, {0, 0, 0});
      float sum = 0;
      for (int d = 0; d < taps[0].count; ++d)
        for (int h = 0; h < taps[1].count; ++h)
          for (int w = 0; w < taps[2].count; ++w) {
            if (taps[0].place[d] < 0 || taps[1].place[h] < 0 || taps[2].place[w] < 0) continue;
            const auto weight = static_cast<float>(taps[0].weight[d] * taps[1].weight[h] * taps[2].weight[w]);
            sum += weight * to_number(from[taps[0].place[d] * x.stride[0] + taps[1].place[h] * x.stride[1] +
                                           taps[2].place[w] * x.stride[2]]);
          }
      args.outputs[0].as<T>()[y.offset(n, c, at)] = from_number<T>(sum);
    }
  }
}

/// Bins [begin, end) of all regions, every channel of each.
template <class T>
void align_bins(const LaunchArgs& args, const roi::Rule& rule, std::int64_t begin, std::int64_t end) {
  const TensorView &view = args.inputs[0], &boxes = args.inputs[1];
  const SpatialView x = spatial_view(view, false), y = spatial_view(args.outputs[0], false);
  const Rows rows(boxes);
  const IndexList images(args.inputs[op::roi_align::batch_indices]);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t r = i / y.positions(), n = images[r];
    check_index("roi_align", "2 (batch_indices)", n, x.batch);
    const Spatial at = position_of(y.size, i % y.positions());
    const auto bound = [&](int k) { return format::load_element(rows.row(r), boxes.dtype, k); };
    const roi::Bins across = roi::bins_of(rule, bound(0), bound(2), static_cast<int>(y.size[2])),
                    down = roi::bins_of(rule, bound(1), bound(3), static_cast<int>(y.size[1]));
    const auto count = static_cast<float>(std::max(1, down.samples * across.samples));
    for (std::int64_t c = 0; c < y.channels; ++c) {
      const T* from = view.as<const T>() + x.offset(n, c, {0, 0, 0});
      float sum = 0, most = 0;
      bool any = false;
      for (int v = 0; v < down.samples; ++v) {
        const roi::Tap row = roi::tap_of(down, static_cast<int>(at[1]), v, static_cast<int>(x.size[1]));
        for (int u = 0; u < across.samples; ++u) {
          const roi::Tap column = roi::tap_of(across, static_cast<int>(at[2]), u, static_cast<int>(x.size[2]));
          const bool inside = row.inside && column.inside;
          const auto term = [&](int h, int w, double weight) {
            return inside ? static_cast<float>(weight) * to_number(from[h * x.stride[1] + w * x.stride[2]]) : 0.0f;
          };
          const float terms[4] = {term(row.low, column.low, row.low_weight * column.low_weight),
                                  term(row.low, column.high, row.low_weight * column.high_weight),
                                  term(row.high, column.low, row.high_weight * column.low_weight),
                                  term(row.high, column.high, row.high_weight * column.high_weight)};
          for (const float value : terms) {
            sum += value;
            most = any ? std::max(most, value) : value;
            any = true;
          }
        }
      }
      args.outputs[0].as<T>()[y.offset(r, c, at)] = from_number<T>(rule.maximum ? most : sum / count);
    }
  }
}

}  // namespace

extern const Kernel image_grid_sample;
const Kernel image_grid_sample{.name = "image.grid_sample",
                               .op = OpKind::grid_sample,
                               .summary = "one point after another, every channel of it; points spread over threads",
                               .bind = [](const Problem& p) -> Launcher {
                                 return [rule = grid_rule(p.attributes)](const LaunchArgs& args) {
                                   if (args.outputs[0].elements() == 0) return;
                                   const std::int64_t points = args.outputs[0].elements() / args.outputs[0].shape[1];
                                   by_real_dtype(args.inputs[0].dtype, [&](auto zero) {
                                     args.pool->parallel_for(points, 16, [&](std::int64_t begin, std::int64_t end) {
                                       sample_points<decltype(zero)>(args, rule, begin, end);
                                     });
                                   });
                                 };
                               }};

extern const Kernel image_roi_align;
const Kernel image_roi_align{.name = "image.roi_align",
                             .op = OpKind::roi_align,
                             .summary = "one bin after another, every channel of it; bins spread over threads",
                             .bind = [](const Problem& p) -> Launcher {
                               return [rule = roi_rule(p.attributes)](const LaunchArgs& args) {
                                 if (args.outputs[0].elements() == 0) return;
                                 const std::int64_t bins = args.outputs[0].elements() / args.outputs[0].shape[1];
                                 by_real_dtype(args.inputs[0].dtype, [&](auto zero) {
                                   args.pool->parallel_for(bins, 4, [&](std::int64_t begin, std::int64_t end) {
                                     align_bins<decltype(zero)>(args, rule, begin, end);
                                   });
                                 });
                               };
                             }};

}  // namespace cermet::cpu
