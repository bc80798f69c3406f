// grid_sample and roi_align: a thread for each result.
#pragma once

#include "kernel/cuda/device/image/points.hpp"
#include "kernel/cuda/device/image/positions.cuh"

namespace cermet::points {

template <Config C>
struct GridTask {
  using Params = GridParams;
  using T = Element<C.x>;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t index = static_cast<int64_t>(item) * threads + team.rank();
    if (index >= p.order.count) return;
    const Position to = position_of(p.order, index);
    const auto* point = static_cast<const Element<C.points>*>(p.grid) + to.n * p.grid_batch +
                        to.at[0] * p.grid_stride[0] + to.at[1] * p.grid_stride[1] + to.at[2] * p.grid_stride[2];
    const T* x = static_cast<const T*>(p.x) + offset_of(p.from, to.n, to.c);
    const grid::Taps w = grid::taps_at(p.rule, to_float(point[0]), p.from.size[2]),
                     h = grid::taps_at(p.rule, to_float(point[1]), p.from.size[1]);
    grid::Taps d{1, {0}, {1}};
    if (p.axes == 3) d = grid::taps_at(p.rule, to_float(point[2]), p.from.size[0]);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i)  // cubic has two axes
#pragma unroll
      for (int j = 0; j < grid::most_taps; ++j)
#pragma unroll
        for (int k = 0; k < grid::most_taps; ++k) {
          if (i >= d.count || j >= h.count || k >= w.count || d.place[i] < 0 || h.place[j] < 0 || w.place[k] < 0)
            continue;
          const float weight = static_cast<float>(d.weight[i] * h.weight[j] * w.weight[k]);
          sum = fmaf(
              weight,
              to_float(
                  x[d.place[i] * p.from.stride[0] + h.place[j] * p.from.stride[1] + w.place[k] * p.from.stride[2]]),
              sum);
        }
    static_cast<T*>(p.y)[offset_of(p.to, to.n, to.c, to.at)] = from_float<T>(sum);
  }
};

template <Config C>
struct RegionTask {
  using Params = RegionParams;
  using T = Element<C.x>;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t index = static_cast<int64_t>(item) * threads + team.rank();
    if (index >= p.order.count) return;
    const Position to = position_of(p.order, index);
    T* y = static_cast<T*>(p.y) + offset_of(p.to, to.n, to.c, to.at);
    const int64_t image = load_index(p.images, p.wide_images, to.n);
    if (image < 0 || image >= p.batch) {
      *y = from_float<T>(quiet_nan());
      return;
    }
    const auto* roi = static_cast<const Element<C.points>*>(p.rois) + to.n * p.roi_stride;
    const T* x = static_cast<const T*>(p.x) + offset_of(p.from, image, to.c);
    const roi::Bins across = roi::bins_of(p.rule, to_float(roi[0]), to_float(roi[2]), p.to.size[2]),
                    down = roi::bins_of(p.rule, to_float(roi[1]), to_float(roi[3]), p.to.size[1]);
    float sum = 0, most = -infinity();
    for (int v = 0; v < down.samples; ++v) {
      const roi::Tap row = roi::tap_of(down, to.at[1], v, p.from.size[1]);
      for (int u = 0; u < across.samples; ++u) {
        const roi::Tap column = roi::tap_of(across, to.at[2], u, p.from.size[2]);
        const bool inside = row.inside && column.inside;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int h = k < 2 ? row.low : row.high, w = k % 2 == 0 ? column.low : column.high;
          const double weight =
              (k < 2 ? row.low_weight : row.high_weight) * (k % 2 == 0 ? column.low_weight : column.high_weight);
          const float value =
              inside ? static_cast<float>(weight) * to_float(x[h * p.from.stride[1] + w * p.from.stride[2]]) : 0.0f;
          sum += value;
          most = fmaxf(most, value);
        }
      }
    }
    const int count = max_of(1, down.samples * across.samples);
    if (down.samples * across.samples == 0) most = 0;
    *y = from_float<T>(p.rule.maximum ? most : sum / static_cast<float>(count));
  }
};

}  // namespace cermet::points
