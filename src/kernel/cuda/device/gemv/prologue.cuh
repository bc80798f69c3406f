// GEMV with a prologue: what makes the row of x on its way into registers, x + delta, a norm, a quantization. Every
// block does it for itself; the first one stores the results that later operators read.
#pragma once

#include "kernel/cuda/device/gemv/gemv.cuh"
#include "kernel/cuda/device/tile/quantizer.cuh"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet::gemv {

/// Row r of x, plus delta, normalized and quantized, into registers.
template <Config C, Shape S, class Team>
struct RowLoader<C, S, Team, true> : LanePart<C, S> {
  using Part = LanePart<C, S>;
  using Part::count, Part::first_of;
  using typename Part::Numbers;
  using typename Part::Row;
  static_assert(!C.prologue.aligned || C.k % count == 0);

  /// The reduction over the warps that have a row between them. `scratch`: a float for each warp of the block.
  template <class Reduction>
  static CERMET_DEVICE float reduce_split_k(float x, float* scratch) {
    const int warp = static_cast<int>(Team::warp());
    x = warp_reduce<Reduction>(x);
    if (lane_index() == 0) scratch[warp] = x;
    Team::sync_part(0, 32 * S.warps);
    float sum = scratch[warp / S.split_k * S.split_k];
#pragma unroll
    for (int i = 1; i < S.split_k; ++i) sum = Reduction::combine(sum, scratch[warp / S.split_k * S.split_k + i]);
    return sum;
  }

  template <bool Aligned, class T>
  static CERMET_DEVICE void store_row(void* row, int64_t first, int a, const Numbers& v) {
#pragma unroll
    for (int j = 0; j < S.warp_pieces; ++j)
      store_floats<Aligned>(static_cast<T*>(row) + first, first_of(j, a), C.k, v[j]);
  }

  /// x + delta.
  template <bool Aligned>
  static CERMET_DEVICE void load_numbers(const Params& p, int row, int a, bool store_sum, Numbers& v) {
    Part::template load_row<Aligned>(p.x, row * p.x_stride, a, v, Element<C.x>{});
    if constexpr (C.prologue.norm) {
      if (p.delta == nullptr) return;
      float d[S.warp_pieces][count];
      Part::template load_row<Aligned>(p.delta, row * p.delta_stride, a, d, Element<C.prologue.delta>{});
#pragma unroll
      for (int j = 0; j < S.warp_pieces; ++j)
#pragma unroll
        for (int i = 0; i < count; ++i) {
          v[j][i] += d[j][i];
          if constexpr (C.prologue.round_sum) v[j][i] = to_float(from_float<Element<C.prologue.sum>>(v[j][i]));
        }
      if (__builtin_expect(store_sum && p.sum != nullptr, false))
        store_row<Aligned, Element<C.prologue.sum>>(p.sum, row * p.sum_stride, a, v);
    }
  }

  static CERMET_DEVICE float square_sum(const Numbers& v) {
    float squares = 0;
#pragma unroll
    for (int j = 0; j < S.warp_pieces; ++j)
#pragma unroll
      for (int i = 0; i < count; ++i) squares = fmaf(v[j][i], v[j][i], squares);
    return squares;
  }

  /// Of a norm; loaded together with the row where registers allow it.
  static constexpr bool loads_weights_first = S.warp_pieces * count <= 32;
  using Weights = float[loads_weights_first ? S.warp_pieces : 1][count];
  using Weight = Element<C.prologue.weight>;
  template <bool Aligned>
  static CERMET_DEVICE void load_weights(const Params& p, int a, Weights& w) {
    if constexpr (loads_weights_first) Part::template load_row<Aligned>(p.norm_weight, 0, a, w, Weight{});
  }
  /// v * factor * (weight + offset), in this order; without a factor: v * (weight + offset).
  template <bool HasFactor>
  static CERMET_DEVICE void scale(const Params& p, int a, float factor, const Weights& weights, Numbers& v) {
#pragma unroll
    for (int j = 0; j < S.warp_pieces; ++j) {
      float w[count];
      if constexpr (!loads_weights_first)
        load_floats<C.prologue.aligned>(static_cast<const Weight*>(p.norm_weight), first_of(j, a), C.k, w);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        if constexpr (loads_weights_first) w[i] = weights[j][i];
        v[j][i] = (HasFactor ? v[j][i] * factor : v[j][i]) * (w[i] + p.norm_offset);
      }
    }
  }

  static CERMET_DEVICE void normalize(const Params& p, int row, int a, bool stores, const Weights& w, Numbers& v,
                                      float* scratch) {
    const float mean = reduce_split_k<cermet::Sum>(square_sum(v), scratch) / static_cast<float>(C.k);
    scale<true>(p, a, 1.0f / sqrtf(mean + p.epsilon), w, v);
    if constexpr (C.prologue.rounded != DType::f32)
#pragma unroll
      for (int j = 0; j < S.warp_pieces; ++j)
#pragma unroll
        for (int i = 0; i < count; ++i) v[j][i] = to_float(from_float<Element<C.prologue.rounded>>(v[j][i]));
    if constexpr (C.prologue.stores_normed)
      if (__builtin_expect(stores, false))
        store_row<C.prologue.aligned, Element<C.prologue.normed>>(p.normed, row * p.normed_stride, a, v);
  }

  /// Quantizes what load_numbers() gives, if need be normalized; returns the scale. The factor of a norm is alike for
  /// all of a row: it enters the scale, so that both statistics take one barrier.
  static CERMET_DEVICE float quantize_row(const Params& p, int a, const Weights& w, Numbers& v, Row& x,
                                          float* scratch) {
    constexpr QuantizedFormat format{.dtype = C.prologue.quantized, .wide = C.prologue.wide};
    constexpr int second = Shape::scratch_bytes / 8;
    float squares = 0;
    if constexpr (C.prologue.norm) {
      squares = warp_reduce<cermet::Sum>(square_sum(v));
      scale<false>(p, a, 1.0f, w, v);
    }
    float largest = lanes_reduce<Magnitude, 32>(largest_magnitude(v));
    const int warp = static_cast<int>(Team::warp()), first = warp / S.split_k * S.split_k;
    if (lane_index() == 0) {
      scratch[warp] = largest;
      if constexpr (C.prologue.norm) scratch[second + warp] = squares;
    }
    Team::sync_part(0, 32 * S.warps);
    largest = squares = 0;
#pragma unroll
    for (int i = 0; i < S.split_k; ++i) {
      largest = Magnitude::combine(largest, scratch[first + i]);
      if constexpr (C.prologue.norm) squares += scratch[second + first + i];
    }
    const float row_scale = quantize_numbers<format, !C.prologue.norm>(
        v, largest, [&](int j, const auto& quantized) { keep_quantized<format.dtype>(quantized, x.v[j]); });
    if constexpr (C.prologue.norm) return row_scale * rsqrtf(squares / static_cast<float>(C.k) + p.epsilon);
    return row_scale;
  }

  /// Before the wait for earlier launches: prefetches the weights of a normalization.
  static CERMET_DEVICE void prefetch(const Params& p, int a) {
#if CERMET_ARCH >= 900
    if constexpr (C.prologue.norm)
#pragma unroll
      for (int j = 0; j < S.warp_pieces; ++j)
        if (first_of(j, a) < C.k)
          asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const Weight*>(p.norm_weight) + first_of(j, a)));
#endif
  }

  template <bool Aligned>
  static CERMET_DEVICE void read(const Params& p, int row, int a, bool store_sum, Weights& w, Numbers& numbers) {
    // One branch for all loads, since code between them that others need is fetched, too, while everything waits.
    if constexpr (!Aligned && C.k % count == 0)
      if (__builtin_expect(p.aligned != 0, true)) return read<true>(p, row, a, store_sum, w, numbers);
    if constexpr (C.prologue.norm) load_weights<Aligned>(p, a, w);
    load_numbers<Aligned>(p, row, a, store_sum, numbers);
  }

  /// Loads row `row`; all warps that multiply call, with their place `a` among the split_k of a row. `stores`: this
  /// warp stores its part of the results `sum` and `normed`. `scratch`: two floats for each warp. Returns the scale of
  /// a row that is quantized here.
  static CERMET_DEVICE float load(const Params& p, int row, int a, bool stores, Row& x, float* scratch) {
    [[maybe_unused]] Weights w;
    if constexpr (C.prologue.quantize) {
      static_assert(sizeof(Element<C.w>) == 1 && integer<C.w> == (C.prologue.quantized == DType::i8));
      float numbers[S.warp_pieces][count];
      read<C.prologue.aligned>(p, row, a, stores, w, numbers);
      return quantize_row(p, a, w, numbers, x, scratch);
    } else {
      static_assert(!integer<C.w>);
      float numbers[S.warp_pieces][count];
      read<C.prologue.aligned>(p, row, a, stores, w, numbers);
      normalize(p, row, a, stores, w, numbers, scratch);
      Part::keep(numbers, x);
      return 1.0f;
    }
  }
};

}  // namespace cermet::gemv
