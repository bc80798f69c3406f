// rms_norm, add_rms_norm and layer_norm: statistics in float32 over a row, then the row scaled.
#pragma once

#include "kernel/cuda/device/rowwise/norm.hpp"
#include "kernel/cuda/device/rowwise/reduce_row.cuh"
#include "kernel/cuda/device/rowwise/sources.cuh"

namespace cermet::norm {

enum class Kind : uint8_t { rms, layer };

struct Config {
  RowShape shape;
  Kind kind = Kind::rms;
  bool add = false, round_sum = false;
  bool weight_offset = false;  ///< one that is not 0
  DType x = DType::f32, residual = DType::f32, y = DType::f32;
  Along weights = Along::none, biases = Along::none;
  DType weight = DType::f32, bias = DType::f32;
};

/// This thread's part of the sum of (v - mean)^2.
template <class Row>
__device__ __forceinline__ float square_sum(Row& row, float mean = 0) {
  float squares[2] = {0, 0};  // two chains
  row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
    for (int k = 0; k < Row::width; ++k) squares[k % 2] = fmaf(v[k] - mean, v[k] - mean, squares[k % 2]);
  });
  return squares[0] + squares[1];
}

template <class Row>
__device__ __forceinline__ float value_sum(Row& row) {
  float total[2] = {0, 0};
  row.each([&](int, int, const float(&v)[Row::width]) {
#pragma unroll
    for (int k = 0; k < Row::width; ++k) total[k % 2] += v[k];
  });
  return total[0] + total[1];
}

__device__ __forceinline__ float inverse_root(float squares, int length, float eps) { return rsqrtf(squares / static_cast<float>(length) + eps); }

template <Config C>
struct Task {
  using Params = norm::Params;
  using Values = float[C.shape.width];
  using Residual = Element<C.residual>;

  static constexpr Overlap overlap = Overlap::late;
  static constexpr bool overwritten = C.shape.columns > 0 && !C.shape.uniform;  ///< the residual, by one of many rows

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team, char* smem) {
    using Map = RowMap<C.shape, Team>;
    RowReducer<Map> reduce(smem);
    const RowPlace<Map> place(item, p.dims, p.rows);
    const Map map(p.length);
    const auto source = [&] {
      const Element<C.x>* x = place.template of<const Element<C.x>>(p.x);
      if constexpr (C.add) return SumSource<Element<C.x>, Residual, C.shape.width, C.round_sum, overwritten>{x, place.template of<const Residual>(p.residual)};
      else return PlainSource<Element<C.x>, C.shape.width>{x};
    }();
    RawRow raw(map, source, place.active);
    const AlongRow<C.weights, Element<C.weight>, Map> weight(map, p.weight, place.active);
    const AlongRow<C.biases, Element<C.bias>, Map> bias(map, p.bias, place.active);
    auto row = make_row(map, source, raw);
    const float mean = C.kind == Kind::layer ? reduce.template operator()<Sum>(value_sum(row)) / static_cast<float>(map.length) : 0.0f;
    const float scale = inverse_root(reduce.template operator()<Sum>(square_sum(row, mean)), map.length, p.eps);
    if (place.active) {
      row.forget_values();
      Element<C.y>* y = place.template of<Element<C.y>>(p.y);
      Residual* sum = place.template of<Residual>(p.sum);
      row.each([&](int i, int64_t column, Values& v) {
        if constexpr (C.add) store_vector(sum + column, from_floats<Residual>(v));
        Values w, b;
        if constexpr (C.weights != Along::none) weight.get(i, column, w);
        if constexpr (C.biases != Along::none) bias.get(i, column, b);
#pragma unroll
        for (int k = 0; k < C.shape.width; ++k) {
          v[k] = C.kind == Kind::layer ? (v[k] - mean) * scale : v[k] * scale;
          if constexpr (C.weights != Along::none) v[k] *= C.kind == Kind::layer ? w[k] : C.weight_offset ? w[k] + p.weight_offset : w[k];
          if constexpr (C.biases != Along::none) v[k] += b[k];
        }
        store_vector(y + column, from_floats<Element<C.y>>(v));
      });
    }
    reduce.finish();
  }
};

}  // namespace cermet::norm
