// A row of x on its way into registers. Lane l of warp a (of `along`) holds, of piece j * along + a, the elements that
// meet the lane's 16 bytes of weight.
#pragma once

#include "kernel/cuda/device/gemv/compact.cuh"
#include "kernel/cuda/device/gemv/quantize.cuh"
#include "kernel/cuda/device/gemv/row_sums.cuh"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet::gemv {

template <Config C, RowShape S, class Team>
struct RowLoader {
  static constexpr int count = lane_elements<C.w>;
  static constexpr bool changes = C.prologue.norm;
  static_assert(!C.prologue.aligned || C.k % count == 0);
  using X = Element<C.x>;
  using Held = HeldRow<C, S.held>;

  static CERMET_DEVICE int first_of(int j, int a) {
    return ((j * S.along + a) * 32 + static_cast<int>(lane_index())) * count;
  }

  /// The reduction over the warps that hold a row between them. `scratch`: a float for each warp of the block.
  template <class Reduction>
  static CERMET_DEVICE float reduce_along(float x, float* scratch) {
    const int warp = static_cast<int>(Team::warp());
    x = warp_reduce<Reduction>(x);
    if (lane_index() == 0) scratch[warp] = x;
    Team::sync_part(0, 32 * S.warps);
    float sum = scratch[warp / S.along * S.along];
#pragma unroll
    for (int i = 1; i < S.along; ++i) sum = Reduction::combine(sum, scratch[warp / S.along * S.along + i]);
    return sum;
  }

  /// Where a lane's elements of all pieces are, in the order of registers.
  template <bool Aligned>
  static CERMET_DEVICE void load_row(const void* row, int64_t first, int a, float (&v)[S.held][count], auto element) {
    using T = decltype(element);
#pragma unroll
    for (int j = 0; j < S.held; ++j)
      load_floats<Aligned>(static_cast<const T*>(row) + first, first_of(j, a), C.k, v[j]);
  }

  /// A row for later operators.
  template <bool Aligned, class T>
  static CERMET_DEVICE void store_row(void* row, int64_t first, int a, const float (&v)[S.held][count]) {
#pragma unroll
    for (int j = 0; j < S.held; ++j) store_floats<Aligned>(static_cast<T*>(row) + first, first_of(j, a), C.k, v[j]);
  }

  template <bool Aligned>
  static CERMET_DEVICE void load_numbers(const Params& p, int row, int a, bool store_sum, float (&v)[S.held][count]) {
    load_row<Aligned>(p.x, row * p.x_stride, a, v, X{});
    if constexpr (changes) {
      if (p.delta == nullptr) return;
      float d[S.held][count];
      load_row<Aligned>(p.delta, row * p.delta_stride, a, d, Element<C.prologue.delta>{});
#pragma unroll
      for (int j = 0; j < S.held; ++j)
#pragma unroll
        for (int i = 0; i < count; ++i) {
          v[j][i] += d[j][i];
          if constexpr (C.prologue.round_sum) v[j][i] = to_float(from_float<Element<C.prologue.sum>>(v[j][i]));
        }
      if (__builtin_expect(store_sum && p.sum != nullptr, false))
        store_row<Aligned, Element<C.prologue.sum>>(p.sum, row * p.sum_stride, a, v);
    }
  }

  static CERMET_DEVICE float square_sum(const float (&v)[S.held][count]) {
    float squares = 0;
#pragma unroll
    for (int j = 0; j < S.held; ++j)
#pragma unroll
      for (int i = 0; i < count; ++i) squares = fmaf(v[j][i], v[j][i], squares);
    return squares;
  }

  /// What a row is normalized with, loaded together with the row where registers allow it.
  static constexpr bool early_weights = S.held * count <= 32;
  using Weights = float[early_weights ? S.held : 1][count];
  using Weight = Element<C.prologue.weight>;
  template <bool Aligned>
  static CERMET_DEVICE void load_weights(const Params& p, int a, Weights& w) {
    if constexpr (early_weights) load_row<Aligned>(p.norm_weight, 0, a, w, Weight{});
  }
  /// v * factor * (weight + offset), in this order; without a factor: v * (weight + offset).
  template <bool HasFactor>
  static CERMET_DEVICE void scale(const Params& p, int a, float factor, const Weights& weights,
                                  float (&v)[S.held][count]) {
#pragma unroll
    for (int j = 0; j < S.held; ++j) {
      float w[count];
      if constexpr (!early_weights)
        load_floats<C.prologue.aligned>(static_cast<const Weight*>(p.norm_weight), first_of(j, a), C.k, w);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        if constexpr (early_weights) w[i] = weights[j][i];
        v[j][i] = (HasFactor ? v[j][i] * factor : v[j][i]) * (w[i] + p.norm_offset);
      }
    }
  }

  static CERMET_DEVICE void normalize(const Params& p, int row, int a, bool store_row_too, const Weights& w,
                                      float (&v)[S.held][count], float* scratch) {
    const float mean = reduce_along<cermet::Sum>(square_sum(v), scratch) / static_cast<float>(C.k);
    scale<true>(p, a, 1.0f / sqrtf(mean + p.epsilon), w, v);
    if constexpr (C.prologue.rounded != DType::f32)
#pragma unroll
      for (int j = 0; j < S.held; ++j)
#pragma unroll
        for (int i = 0; i < count; ++i) v[j][i] = to_float(from_float<Element<C.prologue.rounded>>(v[j][i]));
    if constexpr (C.prologue.normed)
      if (__builtin_expect(store_row_too, false))
        store_row<C.prologue.aligned, Element<C.prologue.normed_type>>(p.normed, row * p.normed_stride, a, v);
  }

  /// Quantizes what load_numbers() gives, if need be normalized; returns the scale. The factor of a norm is alike for
  /// all of a row: it enters the scale, so that both statistics take one barrier.
  static CERMET_DEVICE float quantize_row(const Params& p, int a, const Weights& w, float (&v)[S.held][count],
                                          Held& held, float* scratch) {
    constexpr QuantizedFormat codes{.dtype = C.prologue.codes, .wide = C.prologue.wide};
    constexpr int second = RowShape::scratch_bytes / 8;
    float squares = 0;
    if constexpr (C.prologue.norm) {
      squares = warp_reduce<cermet::Sum>(square_sum(v));
      scale<false>(p, a, 1.0f, w, v);
    }
    float largest = lanes_reduce<Magnitude, 32>(magnitude<S.held>(v));
    const int warp = static_cast<int>(Team::warp()), first = warp / S.along * S.along;
    if (lane_index() == 0) {
      scratch[warp] = largest;
      if constexpr (C.prologue.norm) scratch[second + warp] = squares;
    }
    Team::sync_part(0, 32 * S.warps);
    largest = squares = 0;
#pragma unroll
    for (int i = 0; i < S.along; ++i) {
      largest = Magnitude::combine(largest, scratch[first + i]);
      if constexpr (C.prologue.norm) squares += scratch[second + first + i];
    }
    const float row_scale = quantize<codes, !C.prologue.norm, S.held>(v, largest, held.v);
    if constexpr (C.prologue.norm) return row_scale * rsqrtf(squares / static_cast<float>(C.k) + p.epsilon);
    return row_scale;
  }

  /// Before the wait for earlier launches: the weights of a normalization, which are far away, come nearer.
  static CERMET_DEVICE void fetch(const Params& p, int a) {
#if CERMET_ARCH >= 900
    if constexpr (C.prologue.norm)
#pragma unroll
      for (int j = 0; j < S.held; ++j)
        if (first_of(j, a) < C.k)
          asm volatile("prefetch.global.L2 [%0];" ::"l"(static_cast<const Weight*>(p.norm_weight) + first_of(j, a)));
#endif
  }

  template <bool Aligned>
  static CERMET_DEVICE void read(const Params& p, int row, int a, bool store_sum, Weights& w,
                                 float (&numbers)[S.held][count]) {
    // One question for all loads, since code between them that others need is fetched, too, while everything waits.
    if constexpr (!Aligned && C.k % count == 0)
      if (__builtin_expect(p.aligned != 0, true)) return read<true>(p, row, a, store_sum, w, numbers);
    if constexpr (C.prologue.norm) load_weights<Aligned>(p, a, w);
    load_numbers<Aligned>(p, row, a, store_sum, numbers);
  }

  /// Loads row `row`; all warps that multiply call. `scratch`: two floats for each of them. Returns the scale of a row
  /// that is quantized here.
  static CERMET_DEVICE float load(const Params& p, int row, int a, bool store_sum, Held& held, float* scratch) {
    [[maybe_unused]] Weights w;
    if constexpr (C.prologue.quantize) {
      static_assert(sizeof(Element<C.w>) == 1 && integer<C> == (C.prologue.codes == DType::i8));
      float numbers[S.held][count];
      read<C.prologue.aligned>(p, row, a, store_sum, w, numbers);
      return quantize_row(p, a, w, numbers, held, scratch);
    } else if constexpr (integer<C>) {
      static_assert(C.x == DType::i8 && !C.prologue.norm);
      const char* const x = static_cast<const char*>(p.x) + row * p.x_stride;
#pragma unroll
      for (int j = 0; j < S.held; ++j) held.v[j] = load_piece<int8_t>(x, first_of(j, a), C.k);
    } else {
      float numbers[S.held][count];
      read<C.prologue.aligned>(p, row, a, store_sum, w, numbers);
      if constexpr (C.prologue.norm) normalize(p, row, a, store_sum, w, numbers, scratch);
#pragma unroll
      for (int j = 0; j < S.held; ++j)
#pragma unroll
        for (int i = 0; i < count; ++i) held.v[j][i] = C.compact ? numbers[j][i] * compact_scale : numbers[j][i];
    }
    return 1.0f;
  }
};

}  // namespace cermet::gemv
