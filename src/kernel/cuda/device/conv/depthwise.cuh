// Depthwise convolutions over nhwc tensors: a thread has 16 bytes of channels of a few neighbouring places, and reads
// each pixel of a row of their windows once for all of them.
#pragma once

#include "kernel/cuda/device/conv/depthwise.hpp"
#include "kernel/cuda/device/team.cuh"
#include "kernel/cuda/device/tile/store.cuh"

namespace cermet::conv {

template <class T>
inline constexpr bool is_f16 = false;
template <>
inline constexpr bool is_f16<f16> = true;

/// 16 bytes of elements as float32. Halves of a word are taken apart by the conversion, not by instructions of their
/// own.
template <class T>
CERMET_DEVICE void floats_of(const Vector<uint32_t, 4>& words, float (&values)[per_16_bytes<T>]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      values[i] = __uint_as_float(words[i]);
    } else if constexpr (is_f16<T>) {
      asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\ncvt.f32.f16 %0, low;\ncvt.f32.f16 %1, high;\n}"
          : "=f"(values[2 * i]), "=f"(values[2 * i + 1])
          : "r"(words[i]));
    } else {
      values[2 * i] = __uint_as_float(words[i] << 16), values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
  }
}

/// E: the epilogue, see tile/epilogue.cuh.
template <DepthwiseConfig C, class E>
struct Depthwise {
  using Params = DepthwiseParams;
  using T = Element<C.type>;
  static constexpr int width = per_16_bytes<T>, places = C.places;
  static constexpr int pixels =
      (places - 1) * C.stride + (C.kernel - 1) * C.dilation + 1;  ///< that a row of the windows covers

  using Words = Vector<uint32_t, 4>;

  /// Whether some window has a tap at pixel i of the row.
  static constexpr bool is_read(int i) {
    for (int k = 0; k < C.kernel; ++k) {
      const int from = i - k * C.dilation;
      if (from >= 0 && from % C.stride == 0 && from / C.stride < places) return true;
    }
    return false;
  }

  /// Adds the products of one row of pixels: `x` is its pixel of the first window's first tap, which is in column
  /// `left`. All loads come before the first product: what is outside of x is read as zeros, without a branch that the
  /// loads after it would wait for.
  static CERMET_DEVICE void add_row(const Params& p, const T* x, int left, const T* weight,
                                    float (&sums)[places][width]) {
    Words v[pixels], packed[C.kernel];
#pragma unroll
    for (int i = 0; i < pixels; ++i) {
      v[i] = Words{};
      if (is_read(i) && static_cast<uint32_t>(left + i) < static_cast<uint32_t>(p.width))
        v[i] = *reinterpret_cast<const Words*>(x + i * p.x_column);
    }
#pragma unroll
    for (int k = 0; k < C.kernel; ++k) packed[k] = *reinterpret_cast<const Words*>(weight + k * p.weight_tap);
    float w[C.kernel][width];
#pragma unroll
    for (int k = 0; k < C.kernel; ++k) floats_of<T>(packed[k], w[k]);
#pragma unroll
    for (int i = 0; i < pixels; ++i) {
      if (!is_read(i)) continue;
      float pixel[width];
      floats_of<T>(v[i], pixel);
#pragma unroll
      for (int k = 0; k < C.kernel; ++k) {
        const int from = i - k * C.dilation;
        if (from < 0 || from % C.stride != 0 || from / C.stride >= places) continue;
#pragma unroll
        for (int c = 0; c < width; ++c) sums[from / C.stride][c] = fmaf(pixel[c], w[k][c], sums[from / C.stride][c]);
      }
    }
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    const uint32_t at = item * depthwise_threads + team.rank(), line = at / p.row_runs,
                   in_row = at - line * p.row_runs;  // line: of all samples
    if (line >= p.lines) return;
    const uint32_t runs = static_cast<uint32_t>((p.channels + width - 1) / width), group = in_row / runs;
    const int column = static_cast<int>(group) * places, channel = static_cast<int>(in_row - group * runs) * width;
    const int sample = static_cast<int>(line) / p.rows, row = static_cast<int>(line) - sample * p.rows;
    const int top = row * p.stride_h - p.before_h, left = column * C.stride - p.before_w;
    const T* const x =
        static_cast<const T*>(p.x) + sample * p.x_batch + static_cast<int64_t>(left) * p.x_column + channel;
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
      if (column + i < p.columns)
        epilogue::store_results<E>(p.extra, p.to, first + i, channel, p.channels, p.vectors, sums[i]);
  }
};

}  // namespace cermet::conv
