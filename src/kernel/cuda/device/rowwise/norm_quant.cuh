// rms_norm_quant and add_rms_norm_quant: a row normalized in float32 and quantized as it is stored.
#pragma once

#include "kernel/cuda/device/rowwise/norm_quant.hpp"
#include "kernel/cuda/device/rowwise/quantize_row.cuh"
#include "kernel/cuda/device/rowwise/sources.cuh"
#include "kernel/cuda/device/rowwise/statistics.cuh"

namespace cermet::norm_quant {

struct Config {
  RowShape shape;
  bool add = false;
  bool weight_offset = false;  ///< one that is not 0
  DType x = DType::f32, residual = DType::f32;
  Along weights = Along::none, smooths = Along::none;
  DType weight = DType::f32, smooth = DType::f32;
  Quantization out;
};

template <Config C>
struct Task {
  using Params = norm_quant::Params;
  using Values = float[C.shape.width];
  /// The factor of the norm is the same for a whole row, so it is left out of the quantized values and enters the
  /// scale: both statistics take one reduction.
  static constexpr bool at_once = C.out.scale == Along::none && C.out.format.group == 0 && !C.out.format.asymmetric;
  static constexpr Overlap overlap = Overlap::late;

  /// v * (weight + offset) * smooth.
  template <class Weight, class Smooth>
  static __device__ __forceinline__ void scale_by(const Weight& weight, const Smooth& smooth, float weight_offset, int i, int64_t column, Values& v) {
    Values w, s;
    if constexpr (C.weights != Along::none) weight.get(i, column, w);
    if constexpr (C.smooths != Along::none) smooth.get(i, column, s);
#pragma unroll
    for (int k = 0; k < C.shape.width; ++k) {
      if constexpr (C.weights != Along::none) v[k] *= C.weight_offset ? w[k] + weight_offset : w[k];
      if constexpr (C.smooths != Along::none) v[k] *= s[k];
    }
  }

  template <class Row>
  static __device__ __forceinline__ void store_sum(const Params& p, Row& row, const RowPlace<typename Row::Map>& place) {
    Element<C.residual>* sum = place.template of<Element<C.residual>>(p.sum);
    if (place.active) row.each([&](int, int64_t column, const Values& v) { store_vector(sum + column, from_floats<Element<C.residual>>(v)); });
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char* smem) {
    using Map = RowMap<C.shape, Team>;
    RowReducer<Map> reduce(smem);
    const RowPlace<Map> place(item, p.dims, p.rows);
    const Map map(p.length);
    const auto source = [&] {
      const Element<C.x>* x = place.template of<const Element<C.x>>(p.x);
      if constexpr (C.add)
        return SumSource<Element<C.x>, Element<C.residual>, C.shape.width, false>{x, place.template of<const Element<C.residual>>(p.residual)};
      else return PlainSource<Element<C.x>, C.shape.width>{x};
    }();
    RawRow raw(map, source, place.active);
    const AlongRow<C.weights, Element<C.weight>, Map> weight(map, p.weight, place.active);
    const AlongRow<C.smooths, Element<C.smooth>, Map> smooth(map, p.smooth, place.active);
    auto row = make_row(map, source, raw);
    if constexpr (C.add && Map::held) store_sum(p, row, place);
    const float weight_offset = p.weight_offset;
    const auto scaled = [weight, smooth, weight_offset](int i, int64_t column, Values& v) { scale_by(weight, smooth, weight_offset, i, column, v); };
    if constexpr (at_once) {
      const float squares = norm::square_sum(row);
      quantize_at_once(p, row.then(scaled), squares, place, reduce);
    } else {
      const float norm = norm::inverse_root(reduce.template operator()<Sum>(norm::square_sum(row)), map.length, p.eps);
      auto&& normalized = row.then([scaled, norm](int i, int64_t column, Values& v) {
#pragma unroll
        for (int k = 0; k < C.shape.width; ++k) v[k] *= norm;
        scaled(i, column, v);
      });
      quantize_row<C.out>(normalized, p.out, place, reduce);
    }
    if constexpr (C.add && !Map::held) {  // last, because it may overwrite the residual, which was read again until here
      team.sync();
      store_sum(p, row, place);
    }
    reduce.finish();
  }

  template <class Row, class Map>
  static __device__ __forceinline__ void quantize_at_once(const Params& p, Row&& row, float squares, const RowPlace<Map>& place, RowReducer<Map>& reduce) {
    ValueRange range;
    row.each([&](int, int, const Values& v) {
#pragma unroll
      for (int k = 0; k < C.shape.width; ++k) widen<C.out.format>(range, v[k]);
    });
    const auto both = reduce.template pair<Sum, Magnitude>(squares, fabsf(range.high));
    const float norm = norm::inverse_root(both.first, row.map.length, p.eps);
    const CodeScale scale = code_scale<C.out.format>({both.second, 0});
    const Quantizer<C.out.format, false> quantizer(scale);
    if (!place.active) return;
    row.forget_values();
    const QuantizedRow<C.out> out(p.out, place);
    store_codes(row, out, quantizer);
    if (row.map.lane == 0) out.store_scale(0, {row.map.length == 0 ? 0.0f : scale.scale * norm, 0});
  }
};

}  // namespace cermet::norm_quant
