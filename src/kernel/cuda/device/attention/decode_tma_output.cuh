// What a warp of decode_tma.cuh has of its rows at the end of a span: added up over the warps with the same rows, and
// written as results or as a partial.
#pragma once

#include "kernel/cuda/device/attention/decode_epilogue.cuh"
#include "kernel/cuda/device/attention/decode_tma.hpp"

namespace cermet::attention {

template <TmaDecodeConfig C>
struct TmaDecodeOutput {
  static constexpr DecodeConfig warp_config = C.warp();
  using Mma = DecodeMma<warp_config, CachedLines>;
  static constexpr int halves = Mma::halves, columns = 2 * Mma::v_steps;

  /// Of row lane / 4, and of row lane / 4 + 8 where there are 16; maxima (times log2 e) and sums are the same in the
  /// four lanes of a row.
  float maximum[halves], sum[halves], output[halves][columns][2];

  CERMET_DEVICE explicit TmaDecodeOutput(const typename Mma::State& state) {
    const float unit = Mma::is_quantized ? state.value_unit.of_output() : 1.0f;
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      maximum[h] = state.maximum[h];
      sum[h] = state.sum[h] + __shfl_xor_sync(0xffffffffu, state.sum[h], 1);
      sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 2);
#pragma unroll
      for (int n = 0; n < columns; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          output[h][n][e] =
              unit * (C.rows == 8 ? state.output[n][e] + state.output[n][e + 2] : state.output[n][2 * h + e]);
    }
  }

  /// Adds up what the `parts` warps with the same rows have, in the first of them. `memory`: exchange_bytes() of the
  /// block. sync(): among those warps.
  template <class Sync>
  CERMET_DEVICE void exchange(float* memory, int writer, int part, Sync&& sync) {
    if constexpr (C.parts == 1) return;
    const int lane = static_cast<int>(lane_index());
    const auto place = [&](int of, int i) {
      return memory + (((of - 1) * C.writers() + writer) * C.exchanged() + i) * 32 + lane;
    };
    constexpr int row = 2 + 2 * columns;
    if (part > 0) {
#pragma unroll
      for (int h = 0; h < halves; ++h) {
        *place(part, h * row) = maximum[h], *place(part, h * row + 1) = sum[h];
#pragma unroll
        for (int n = 0; n < columns; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e) *place(part, h * row + 2 + 2 * n + e) = output[h][n][e];
      }
    }
    sync();
    if (part == 0) {
#pragma unroll 1
      for (int other = 1; other < C.parts; ++other) {
#pragma unroll
        for (int h = 0; h < halves; ++h) {
          const float others = *place(other, h * row), top = fmaxf(maximum[h], others),
                      own_factor = rescale_factor(maximum[h], top), factor = rescale_factor(others, top);
          maximum[h] = top;
          sum[h] = sum[h] * own_factor + *place(other, h * row + 1) * factor;
#pragma unroll
          for (int n = 0; n < columns; ++n)
#pragma unroll
            for (int e = 0; e < 2; ++e)
              output[h][n][e] = output[h][n][e] * own_factor + *place(other, h * row + 2 + 2 * n + e) * factor;
        }
      }
    }
    sync();  // the memory is free
  }

  /// Columns of the lane's i-th four neighbours of a row.
  static CERMET_DEVICE int column(int i) {
    const int lane = static_cast<int>(lane_index());
    return Mma::is_quantized ? 16 * i + 4 * (lane % 4) : 16 * i + 8 * (lane % 2) + 4 * (lane % 4 / 2);
  }
  /// Those. Of 16 bits two lanes exchange what they have of them. By whole warps.
  CERMET_DEVICE void quad(int h, int i, float (&x)[4]) const {
    const float(&even)[2] = output[h][2 * i], (&odd)[2] = output[h][2 * i + 1];
    if constexpr (Mma::is_quantized) {
      x[0] = even[0], x[1] = odd[0], x[2] = even[1], x[3] = odd[1];
    } else {
      const bool second = lane_index() % 2 == 1;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float other = __shfl_xor_sync(0xffffffffu, second ? even[e] : odd[e], 1);
        x[e] = second ? other : even[e];
        x[2 + e] = second ? odd[e] : other;
      }
    }
  }

  /// Rows of a tile whose keys were all met.
  CERMET_DEVICE void write(const Params& p, const QueryTile& own, int kv_head) const {
    const int lane = static_cast<int>(lane_index());
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      const int r = lane / 4 + 8 * h;
      const bool used = r < own.rows;
      const RowWriter<warp_config> row(p, own, kv_head, used ? r : 0, maximum[h], sum[h]);
      float any = 0.0f;
#pragma unroll
      for (int i = 0; i < columns / 2; ++i) {
        float x[4];
        quad(h, i, x);
        if (used) any += row.store(column(i), x);
      }
      if (!used) continue;
      if (lane % 4 == 0) row.store_lse();
#pragma unroll 1
      for (int i = 0; i < columns / 2; ++i) row.repair_quad(column(i), any);
    }
  }
  /// Rows first .. of a partial that has been left by another block: their maxima, then what is added relative to the
  /// maxima of all, which `top` has.
  static CERMET_DEVICE void raise(const float* partial, int first, int rows, float (&top)[halves]) {
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      const int r = static_cast<int>(lane_index()) / 4 + 8 * h;
      if (r < rows) top[h] = fmaxf(top[h], __ldcg(partial + first + r));
    }
  }
  CERMET_DEVICE void rescale(const float (&top)[halves]) {
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      const float factor = rescale_factor(maximum[h], top[h]);
      maximum[h] = top[h];
      sum[h] *= factor;
#pragma unroll
      for (int n = 0; n < columns; ++n) output[h][n][0] *= factor, output[h][n][1] *= factor;
    }
  }
  template <class SpanPartials>
  CERMET_DEVICE void add(float* partial, int first, int rows) {
    const int lane = static_cast<int>(lane_index());
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      const int r = lane / 4 + 8 * h;
      if (r >= rows) continue;
      const float factor = rescale_factor(__ldcg(partial + first + r), maximum[h]);
      sum[h] = fmaf(__ldcg(partial + C.block_rows() + first + r), factor, sum[h]);
#pragma unroll
      for (int n = 0; n < columns; n += 2) {
        const auto two = [&](int d) {
          return __ldcg(reinterpret_cast<const float2*>(SpanPartials::output(partial, first + r, d)));
        };
        const int d = 8 * n + (Mma::is_quantized ? 4 : 2) * (lane % 4);
        const float2 a = two(d), b = two(d + (Mma::is_quantized ? 2 : 8));
        float(&even)[2] = output[h][n], (&odd)[2] = output[h][n + 1];
        even[0] = fmaf(a.x, factor, even[0]);
        even[1] = fmaf(Mma::is_quantized ? b.x : a.y, factor, even[1]);
        odd[0] = fmaf(Mma::is_quantized ? a.y : b.x, factor, odd[0]);
        odd[1] = fmaf(b.y, factor, odd[1]);
      }
    }
  }
  /// As rows first .. of a partial.
  template <class SpanPartials>
  CERMET_DEVICE void write_partial(float* partial, int first, int rows) const {
    const int lane = static_cast<int>(lane_index());
#pragma unroll
    for (int h = 0; h < halves; ++h) {
      const int r = lane / 4 + 8 * h;
#pragma unroll
      for (int i = 0; i < columns / 2; ++i) {
        float x[4];
        quad(h, i, x);
        if (r < rows)
          *reinterpret_cast<Vector<float, 4>*>(SpanPartials::output(partial, first + r, column(i))) = {x[0], x[1], x[2],
                                                                                                       x[3]};
      }
      if (r < rows && lane % 4 == 0) partial[first + r] = maximum[h], partial[C.block_rows() + first + r] = sum[h];
    }
  }
};

}  // namespace cermet::attention
