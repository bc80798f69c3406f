// The windows of a convolution as rows of a matrix: what stands at each step of the reduction, gathered by address.
#pragma once

#include "kernel/cuda/device/conv/implicit.hpp"
#include "kernel/cuda/device/types.cuh"

namespace cermet::conv {

/// `Count` windows whose elements a thread reads in the order of the reduction: taps, and channels within a tap.
template <class T, int Count>
struct Windows {
  const ImplicitParams& p;
  const T* first[Count];        ///< channel 0 of the first tap, which may be outside of x
  int top[Count], left[Count];  ///< pixel of the first tap
  int tap_h = 0, tap_w = 0, channel;

  /// Windows `row`, `row` + `apart`, .. of the channels of a group, from step `step` of the reduction on.
  CERMET_DEVICE Windows(const ImplicitParams& params, int row, int apart, int group, int step)
      : p(params), channel(step) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const int at = row + i * apart, line = at / p.columns, sample = line / p.rows;
      left[i] = at % p.columns * p.stride[1] - p.before[1];
      top[i] = line % p.rows * p.stride[0] - p.before[0];
      first[i] = static_cast<const T*>(p.x) + sample * p.x_batch + top[i] * p.x_row + left[i] * p.x_column +
                 group * p.group_inputs;
      if (at >= p.m) top[i] = -(1 << 30);  // outside with every tap
    }
    settle();
  }
  CERMET_DEVICE void advance(int steps) {
    channel += steps;
    settle();
  }
  CERMET_DEVICE void settle() {
    while (channel >= p.group_inputs) {
      channel -= p.group_inputs;
      if (++tap_w == p.kernel[1]) tap_w = 0, ++tap_h;
    }
  }

  /// Address of window i's element at this step; null where it is padding, or past the reduction's end.
  CERMET_DEVICE const T* address(int i) const {
    const int h = tap_h * p.dilation[0], w = tap_w * p.dilation[1];
    const bool inside = tap_h < p.kernel[0] && static_cast<uint32_t>(top[i] + h) < static_cast<uint32_t>(p.height) &&
                        static_cast<uint32_t>(left[i] + w) < static_cast<uint32_t>(p.width);
    return inside ? first[i] + (h * p.x_row + w * p.x_column + channel) : nullptr;
  }
  /// `Run` elements of every window from this step on, one by one; then stands behind them.
  template <int Run>
  CERMET_DEVICE void take(T (&to)[Count][Run]) {
#pragma unroll
    for (int e = 0; e < Run; ++e) {
#pragma unroll
      for (int i = 0; i < Count; ++i) {
        const T* const at = address(i);
        to[i][e] = at != nullptr ? *at : T{};
      }
      advance(1);
    }
  }
};

}  // namespace cermet::conv
