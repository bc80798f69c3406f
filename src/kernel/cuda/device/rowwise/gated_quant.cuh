// silu_and_mul_quant and dequant_swiglu_quant: silu(gate) * up * smooth, from values or from int32 accumulators,
// quantized as it is stored.
#pragma once

#include "kernel/cuda/device/pointwise/activations.cuh"
#include "kernel/cuda/device/rowwise/gated_quant.hpp"
#include "kernel/cuda/device/rowwise/quantize_row.cuh"

namespace cermet::gated_quant {

struct Config {
  RowShape shape;  ///< of the result
  gated::Layout layout;
  DType x = DType::f32;
  Along weight_scales = Along::none;  ///< of accumulators: x is i32
  Along biases = Along::none;
  DType bias = DType::f32;
  Along smooths = Along::none;
  DType smooth = DType::f32;
  Quantization out;
};

/// silu(gate) * up of elements [column, column + Width).
template <Config C>
struct Source {
  static constexpr int width = C.shape.width;
  using X = Element<C.x>;
  struct Raw {
    Vector<X, width> first, second;  ///< of the halves, or of interleaved pairs
  };
  const X* x;  // [2 * length]
  int length;
  const float* weight_scale;        // one or [2 * length]
  const Element<C.bias>* bias;      // [2 * length]
  const Element<C.smooth>* smooth;  // [length]
  float act_scale;

  __device__ __forceinline__ Raw fetch(int64_t column) const {
    if constexpr (C.layout.interleaved) return {load_vector<width>(x + 2 * column), load_vector<width>(x + 2 * column + width)};
    else return {load_vector<width>(x + column), load_vector<width>(x + length + column)};
  }

  /// Accumulators of elements [column, column + width) of the row of 2 * length.
  __device__ __forceinline__ void dequantize(const Vector<X, width>& raw, int64_t column, float (&v)[width]) const {
    Vector<float, width> scale;
    if constexpr (C.weight_scales == Along::each) scale = load_vector<width>(weight_scale + column);
    Vector<Element<C.bias>, width> added;
    if constexpr (C.biases == Along::each) added = load_vector<width>(bias + column);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float factor = (C.weight_scales == Along::each ? scale[k] : *weight_scale) * act_scale;
      if constexpr (C.biases == Along::each && C.bias == DType::i32) {
        v[k] = static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(raw[k]) + static_cast<uint32_t>(added[k]))) * factor;  // wraps
      } else {
        v[k] = static_cast<float>(raw[k]) * factor;
        if constexpr (C.biases == Along::each) v[k] += to_float(added[k]);
      }
    }
  }

  __device__ __forceinline__ void values(const Raw& raw, int64_t column, float (&v)[width]) const {
    float first[width], second[width];
    if constexpr (C.weight_scales != Along::none) {
      dequantize(raw.first, column, first);
      dequantize(raw.second, length + column, second);
    } else if constexpr (C.layout.interleaved) {
#pragma unroll
      for (int k = 0; k < width; ++k) {
        first[k] = to_float(2 * k < width ? raw.first[2 * k % width] : raw.second[2 * k % width]);
        second[k] = to_float(2 * k + 1 < width ? raw.first[(2 * k + 1) % width] : raw.second[(2 * k + 1) % width]);
      }
    } else {
      to_floats(raw.first, first);
      to_floats(raw.second, second);
    }
    if constexpr (C.layout.gate_first) gated::apply<gated::Function::silu>(first, second, {}, v);
    else gated::apply<gated::Function::silu>(second, first, {}, v);
    if constexpr (C.smooths == Along::each) {
      float factors[width];
      to_floats(load_vector<width>(smooth + column), factors);
#pragma unroll
      for (int k = 0; k < width; ++k) v[k] *= factors[k];
    }
  }
};

template <Config C>
struct Task {
  using Params = gated_quant::Params;
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team, char* smem) {
    using Map = RowMap<C.shape, Team>;
    RowReducer<Map> reduce(smem);
    const RowPlace<Map> place(item, p.dims, p.rows);
    const Map map(p.length);
    Source<C> source{.x = place.template of<const Element<C.x>>(p.x),
                     .length = map.length,
                     .weight_scale = static_cast<const float*>(p.weight_scale),
                     .bias = static_cast<const Element<C.bias>*>(p.bias),
                     .smooth = static_cast<const Element<C.smooth>*>(p.smooth),
                     .act_scale = 1};
    if constexpr (C.weight_scales != Along::none) source.act_scale = *place.template of<const float>(p.act_scale);
    RawRow raw(map, source, place.active);
    auto row = make_row(map, source, raw);
    quantize_row<C.out>(row, p.out, place, reduce);
    reduce.finish();
  }
};

}  // namespace cermet::gated_quant
