// Depthwise convolutions over nhwc tensors: a thread has 16 bytes of channels of a few neighbouring places, and reads each pixel of a row of their windows
// once for all of them.
#pragma once

#include "kernel/cuda/device/conv/depthwise.hpp"
#include "kernel/cuda/device/conv/store.cuh"
#include "kernel/cuda/device/team.cuh"

namespace cermet::conv {

struct DepthwiseConfig {
  DType type;                                ///< of x and the weight
  int kernel = 3, stride = 1, dilation = 1;  ///< along the columns
};

/// E: the epilogue, see tile/epilogue.cuh.
template <DepthwiseConfig C, class E>
struct Depthwise {
  using Params = DepthwiseParams;
  using T = Element<C.type>;
  static constexpr int width = per_16_bytes<T>, places = depthwise_places;
  static constexpr int pixels = (places - 1) * C.stride + (C.kernel - 1) * C.dilation + 1;  ///< that a row of the windows covers

  using Run = Vector<T, width>;

  /// Whether some window has a tap at pixel i of the row.
  static constexpr bool is_read(int i) {
    for (int k = 0; k < C.kernel; ++k) {
      const int from = i - k * C.dilation;
      if (from >= 0 && from % C.stride == 0 && from / C.stride < places) return true;
    }
    return false;
  }

  /// Adds the products of one row of pixels: `x` is its pixel of the first window's first tap, which is in column `left`. All loads come before the first
  /// product: what is outside of x is read as zeros, without a branch that the loads behind it would wait for.
  static __device__ __forceinline__ void add_row(const Params& p, const T* x, int left, const T* weight, float (&sums)[places][width]) {
    Run w[C.kernel], v[pixels];
#pragma unroll
    for (int i = 0; i < pixels; ++i) {
      v[i] = Run{};
      if (is_read(i) && static_cast<uint32_t>(left + i) < static_cast<uint32_t>(p.width)) v[i] = *reinterpret_cast<const Run*>(x + i * p.x_column);
    }
#pragma unroll
    for (int k = 0; k < C.kernel; ++k) w[k] = *reinterpret_cast<const Run*>(weight + k * p.weight_tap);
#pragma unroll
    for (int i = 0; i < pixels; ++i) {
      if (!is_read(i)) continue;
#pragma unroll
      for (int k = 0; k < C.kernel; ++k) {
        const int from = i - k * C.dilation;
        if (from < 0 || from % C.stride != 0 || from / C.stride >= places) continue;
#pragma unroll
        for (int c = 0; c < width; ++c) sums[from / C.stride][c] = fmaf(to_float(v[i][c]), to_float(w[k][c]), sums[from / C.stride][c]);
      }
    }
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team, char*) {
    const uint32_t runs = static_cast<uint32_t>((p.channels + width - 1) / width);
    const uint32_t at = item % p.row_items * depthwise_threads + Team::rank(), line = item / p.row_items;  // of all samples
    const int column = static_cast<int>(at / runs) * places, channel = static_cast<int>(at % runs) * width;
    if (column >= p.columns) return;
    const int sample = static_cast<int>(line) / p.rows, row = static_cast<int>(line) % p.rows;
    const int top = row * p.stride_h - p.before_h, left = column * C.stride - p.before_w;
    const T* const x = static_cast<const T*>(p.x) + sample * p.x_batch + left * p.x_column + channel;
    const T* weight = static_cast<const T*>(p.weight) + channel;
    float sums[places][width] = {};
#pragma unroll 1
    for (int k = 0; k < p.kernel_h; ++k, weight += C.kernel * p.weight_tap) {
      const int h = top + k * p.dilation_h;
      if (static_cast<uint32_t>(h) < static_cast<uint32_t>(p.height)) add_row(p, x + h * p.x_row, left, weight, sums);
    }
    const int first = static_cast<int>(line) * p.columns + column;
#pragma unroll
    for (int i = 0; i < places; ++i)
      if (column + i < p.columns) store_results<E>(p.extra, static_cast<Element<E::out>*>(p.y), p.y_row, first + i, channel, p.channels, p.vectors, sums[i]);
  }
};

}  // namespace cermet::conv
