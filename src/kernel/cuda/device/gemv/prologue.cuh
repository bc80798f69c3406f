// A row of x on its way into registers. Lane l of warp a (of `along`) holds, of piece j * along + a, the elements that meet the lane's 16 bytes of weight.
#pragma once

#include "kernel/cuda/device/gemv/quantize.cuh"
#include "kernel/cuda/device/gemv/row_sums.cuh"
#include "kernel/cuda/device/tile/reduce.cuh"

namespace cermet::gemv {

template <Config C, RowShape S, class Team>
struct RowLoader {
  static constexpr int count = lane_elements<C.w>;
  static constexpr bool changes = C.prologue.norm;
  using X = Element<C.x>;
  using Held = HeldRow<C, S.held>;

  static __device__ __forceinline__ int first_of(int j, int a) { return ((j * S.along + a) * 32 + static_cast<int>(lane_index())) * count; }

  /// The reduction over the warps that hold a row between them. `scratch`: a float for each warp of the block.
  template <class Reduction>
  static __device__ __forceinline__ float reduce_along(float x, float* scratch) {
    const int warp = static_cast<int>(Team::warp());
    x = warp_reduce<Reduction>(x);
    if (lane_index() == 0) scratch[warp] = x;
    Team::sync_part(0, 32 * S.warps);
    float sum = scratch[warp / S.along * S.along];
#pragma unroll
    for (int i = 1; i < S.along; ++i) sum = Reduction::combine(sum, scratch[warp / S.along * S.along + i]);
    return sum;
  }

  static __device__ __forceinline__ void load_numbers(const Params& p, int row, int a, bool store_sum, float (&v)[S.held][count]) {
    const X* const x = static_cast<const X*>(p.x) + row * p.x_stride;
#pragma unroll
    for (int j = 0; j < S.held; ++j) load_floats(x, first_of(j, a), C.k, v[j]);
    if constexpr (changes) {
      using Delta = Element<C.prologue.delta>;
      using Total = Element<C.prologue.sum>;
      if (p.delta == nullptr) return;
      const Delta* const delta = static_cast<const Delta*>(p.delta) + row * p.delta_stride;
      Total* const sum = static_cast<Total*>(p.sum) + row * p.sum_stride;
#pragma unroll
      for (int j = 0; j < S.held; ++j) {
        float d[count];
        load_floats(delta, first_of(j, a), C.k, d);
#pragma unroll
        for (int i = 0; i < count; ++i) {
          v[j][i] += d[i];
          if (store_sum && p.sum != nullptr && first_of(j, a) + i < C.k) sum[first_of(j, a) + i] = from_float<Total>(v[j][i]);
        }
      }
    }
  }

  static __device__ __forceinline__ float square_sum(const float (&v)[S.held][count]) {
    float squares = 0;
#pragma unroll
    for (int j = 0; j < S.held; ++j)
#pragma unroll
      for (int i = 0; i < count; ++i) squares = fmaf(v[j][i], v[j][i], squares);
    return squares;
  }

  /// v * factor * (weight + offset), in this order.
  static __device__ __forceinline__ void scale(const Params& p, int a, float factor, float (&v)[S.held][count]) {
    using Weight = Element<C.prologue.weight>;
#pragma unroll
    for (int j = 0; j < S.held; ++j) {
      float w[count];
      load_floats(static_cast<const Weight*>(p.norm_weight), first_of(j, a), C.k, w);
#pragma unroll
      for (int i = 0; i < count; ++i) v[j][i] = v[j][i] * factor * (w[i] + p.norm_offset);
    }
  }

  static __device__ __forceinline__ void normalize(const Params& p, int row, int a, bool store_row, float (&v)[S.held][count], float* scratch) {
    const float mean = reduce_along<cermet::Sum>(square_sum(v), scratch) / static_cast<float>(C.k);
    scale(p, a, 1.0f / sqrtf(mean + p.epsilon), v);
    if constexpr (C.prologue.normed) {
      if (!store_row) return;
      float* const normed = static_cast<float*>(p.normed) + row * p.normed_stride;
#pragma unroll
      for (int j = 0; j < S.held; ++j)
#pragma unroll
        for (int i = 0; i < count; ++i)
          if (first_of(j, a) + i < C.k) normed[first_of(j, a) + i] = v[j][i];
    }
  }

  /// Quantizes what load_numbers() gives; returns the scale.
  static __device__ __forceinline__ float quantize_row(const float (&v)[S.held][count], Held& held, float* scratch) {
    constexpr CodeFormat codes{.dtype = DType::i8, .wide = C.prologue.wide};
    const float largest = reduce_along<Magnitude>(magnitude<S.held>(v), scratch);
    return quantize<codes, S.held>(v, largest, held.v);
  }

  /// Loads row `row`; all warps that multiply call. `scratch`: a float for each of them. Returns the scale of a row that is quantized here.
  static __device__ __forceinline__ float load(const Params& p, int row, int a, bool store_sum, Held& held, float* scratch) {
    if constexpr (C.prologue.quantize) {
      static_assert(integer<C> && !C.prologue.norm);
      float numbers[S.held][count];
      load_numbers(p, row, a, store_sum, numbers);
      return quantize_row(numbers, held, scratch);
    } else if constexpr (integer<C>) {
      static_assert(C.x == DType::i8 && !C.prologue.norm);
      const char* const x = static_cast<const char*>(p.x) + row * p.x_stride;
#pragma unroll
      for (int j = 0; j < S.held; ++j) held.v[j] = load_piece<int8_t>(x, first_of(j, a), C.k);
    } else {
      float numbers[S.held][count];
      load_numbers(p, row, a, store_sum, numbers);
      if constexpr (C.prologue.norm) normalize(p, row, a, store_sum, numbers, scratch);
#pragma unroll
      for (int j = 0; j < S.held; ++j)
#pragma unroll
        for (int i = 0; i < count; ++i) held.v[j][i] = numbers[j][i];
    }
    return 1.0f;
  }
};

}  // namespace cermet::gemv
