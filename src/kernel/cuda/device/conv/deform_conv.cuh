// deform_conv: a thread for each result.
#pragma once

#include "kernel/cuda/device/conv/deform_conv.hpp"
#include "kernel/cuda/device/image/positions.cuh"

namespace cermet::deform_conv {

template <DType Type>
struct Task {
  using Params = deform_conv::Params;
  using T = Element<Type>;

  /// Element between pixels of a plane; those outside are zeros.
  static CERMET_DEVICE float between(const T* plane, const SpatialTensor& x, double h, double w) {
    const double top = floor(h), left = floor(w);
    if (!(top >= -1 && top < x.size[1] && left >= -1 && left < x.size[2])) return 0;
    const int32_t row = static_cast<int32_t>(top), column = static_cast<int32_t>(left);
    const float low = static_cast<float>(h - top), right = static_cast<float>(w - left);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int32_t r = row + i / 2, c = column + i % 2;
      if (r < 0 || r >= x.size[1] || c < 0 || c >= x.size[2]) continue;
      sum = fmaf((i / 2 ? low : 1 - low) * (i % 2 ? right : 1 - right),
                 to_float(plane[r * x.stride[1] + c * x.stride[2]]), sum);
    }
    return sum;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t index = static_cast<int64_t>(item) * threads + team.rank();
    if (index >= p.order.count) return;
    const Position to = position_of(p.order, index);
    const int64_t first = to.c / p.outer * p.inner;
    float sum = p.bias ? to_float(static_cast<const T*>(p.bias)[to.c]) : 0.0f;
    for (int32_t u = 0; u < p.kernel[0]; ++u)
      for (int32_t v = 0; v < p.kernel[1]; ++v) {
        const T* weight = static_cast<const T*>(p.weight) + to.c * p.weight_stride[0] + u * p.weight_stride[2] + v;
        int64_t group = -1;
        double row = 0, column = 0;
        float scale = 1;
        for (int32_t c = 0; c < p.inner; ++c) {
          const int64_t channel = first + c;
          if (channel / p.each != group) {  // another offset group
            group = channel / p.each;
            const int64_t tap = (group * p.kernel[0] + u) * p.kernel[1] + v;
            const T* moves = static_cast<const T*>(p.offset);
            row = static_cast<double>(to.at[1] * p.stride[0] - p.before[0] + u * p.dilation[0]) +
                  to_float(moves[offset_of(p.moves, to.n, 2 * tap, to.at)]);
            column = static_cast<double>(to.at[2] * p.stride[1] - p.before[1] + v * p.dilation[1]) +
                     to_float(moves[offset_of(p.moves, to.n, 2 * tap + 1, to.at)]);
            if (p.mask) scale = to_float(static_cast<const T*>(p.mask)[offset_of(p.scales, to.n, tap, to.at)]);
          }
          const float value =
              between(static_cast<const T*>(p.x) + offset_of(p.from, to.n, channel), p.from, row, column);
          sum = fmaf(to_float(weight[c * p.weight_stride[1]]) * scale, value, sum);
        }
      }
    static_cast<T*>(p.y)[offset_of(p.to, to.n, to.c, to.at)] = from_float<T>(sum);
  }
};

}  // namespace cermet::deform_conv
