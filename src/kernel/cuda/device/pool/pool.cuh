// Pooling: a thread for each result, or for a few neighbouring channels where they are last.
#pragma once

#include "kernel/cuda/device/image/positions.cuh"
#include "kernel/cuda/device/pool/pool.hpp"

namespace cermet::pool {

/// Taps of a window along one axis that are inside: [first, last), tap 0 at `start`.
struct Taps {
  int32_t first, last, start, step;
};
CERMET_DEVICE Taps taps_of(const Params& p, int axis, int32_t at) {
  const int32_t start = at * p.stride[axis] - p.before[axis], step = p.dilation[axis], size = p.from.size[axis];
  const int32_t last = start >= size ? 0 : (size - start + step - 1) / step;
  return {start >= 0 ? 0 : (step - 1 - start) / step, min_of(last, p.kernel[axis]), start, step};
}
/// How many taps an average counts.
CERMET_DEVICE int32_t counted(const Params& p, int axis, const Taps& taps) {
  if (!p.count_padding) return max_of(taps.last - taps.first, 0);
  const int32_t end = p.from.size[axis] + p.after[axis];
  return taps.start >= end ? 0 : min_of((end - taps.start + taps.step - 1) / taps.step, p.kernel[axis]);
}

template <Config C>
struct Task {
  using Params = pool::Params;
  using T = Element<C.type>;
  using Run = Vector<T, C.run>;

  static CERMET_DEVICE float lowest() {
    if constexpr (C.kind != Kind::max) return 0.0f;
    else if constexpr (C.type == DType::i8) return -128.0f;
    else if constexpr (C.type == DType::u8) return 0.0f;
    else return -infinity();
  }
  static CERMET_DEVICE float raised(float x, int32_t power) {
    if (power == 1) return fabsf(x);
    if (power == 2) return x * x;
    float result = 1;
    for (int32_t i = 0; i < power; ++i) result *= fabsf(x);
    return result;
  }
  static CERMET_DEVICE T result(const Params& p, float total, float count) {
    if constexpr (C.kind == Kind::max && sizeof(T) == 1) return static_cast<T>(total);
    else if constexpr (C.kind == Kind::max) return from_float<T>(total);
    else if constexpr (C.kind == Kind::average) return from_float<T>(total / max_of(count, 1.0f));
    else
      return from_float<T>(p.power == 1   ? total
                           : p.power == 2 ? sqrtf(total)
                                          : powf(total, 1.0f / static_cast<float>(p.power)));
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const int64_t index = static_cast<int64_t>(item) * threads + team.rank();
    if (index >= p.order.count) return;
    const Position to = position_of(p.order, index);
    const int64_t channel = to.c * C.run;
    const Taps d = taps_of(p, 0, to.at[0]), h = taps_of(p, 1, to.at[1]), w = taps_of(p, 2, to.at[2]);
    const T* x = static_cast<const T*>(p.x) + offset_of(p.from, to.n, channel);
    float total[C.run];
    int64_t best = -1;
    for (int r = 0; r < C.run; ++r) total[r] = lowest();
    for (int32_t i = d.first; i < d.last; ++i)
      for (int32_t j = h.first; j < h.last; ++j)
        for (int32_t k = w.first; k < w.last; ++k) {
          const int32_t at[3] = {d.start + i * d.step, h.start + j * h.step, w.start + k * w.step};
          const Run values = *reinterpret_cast<const Run*>(x + at[0] * p.from.stride[0] + at[1] * p.from.stride[1] +
                                                           at[2] * p.from.stride[2]);
#pragma unroll
          for (int r = 0; r < C.run; ++r) {
            const float value = to_float(values[r]);
            if constexpr (C.kind == Kind::max) {
              const bool better =
                  value > total[r] || (value != value && total[r] == total[r]) || (C.run == 1 && best < 0);
              if (better) total[r] = value;
              if constexpr (C.run == 1) {
                const int64_t column = (static_cast<int64_t>(at[2]) * p.from.size[1] + at[1]) * p.from.size[0] + at[0];
                const int64_t row = (static_cast<int64_t>(at[0]) * p.from.size[1] + at[1]) * p.from.size[2] + at[2];
                if (better) best = p.columns ? column : row;
              }
            } else if constexpr (C.kind == Kind::average) {
              total[r] += value;
            } else {
              total[r] += raised(value, p.power);
            }
          }
        }
    const float count = C.kind == Kind::average
                            ? static_cast<float>(counted(p, 0, d)) * static_cast<float>(counted(p, 1, h)) *
                                  static_cast<float>(counted(p, 2, w))
                            : 1;
    Run y;
#pragma unroll
    for (int r = 0; r < C.run; ++r) y[r] = result(p, total[r], count);
    *reinterpret_cast<Run*>(static_cast<T*>(p.y) + offset_of(p.to, to.n, channel, to.at)) = y;
    if constexpr (C.kind == Kind::max && C.run == 1) {
      const int64_t plane = static_cast<int64_t>(p.from.size[0]) * p.from.size[1] * p.from.size[2];
      if (p.indices)
        p.indices[offset_of(p.places, to.n, channel, to.at)] =
            best < 0 ? -1 : (to.n * p.channels + channel) * plane + best;
    }
  }
};

}  // namespace cermet::pool
