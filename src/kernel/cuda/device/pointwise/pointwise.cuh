// Every elementwise operator: a row of pointwise.inc over a tile.
#pragma once

#include "kernel/cuda/device/pointwise/double.cuh"
#include "kernel/cuda/device/pointwise/functions.cuh"
#include "kernel/cuda/device/pointwise/pointwise.hpp"
#include "kernel/cuda/device/pointwise/tile.cuh"

namespace cermet::pointwise {

template <class T>
inline constexpr bool is_real = false;
template <>
inline constexpr bool is_real<float> = true;
template <>
inline constexpr bool is_real<bf16> = true;
template <>
inline constexpr bool is_real<f16> = true;

constexpr bool is_unsigned(DType t) { return t == DType::u8 || t == DType::u16 || t == DType::u32 || t == DType::u64; }

template <class Row, Config C>
struct Task {
  using Params = pointwise::Params;
  using In = Element<C.in>;
  using Out = Element<C.out>;
  static constexpr Overlap overlap = Overlap::late;

  static CERMET_DEVICE Out apply(In a, In b, const Params& p) {
    if constexpr (is_real<In>) {
      const float y = Row::template apply<Real>(to_float(a), to_float(b), p.parameters[0], p.parameters[1]).v;
      if constexpr (is_real<Out>) return from_float<Out>(y);
      else return y != 0;
    } else if constexpr (C.in == DType::f64) {
      const double y = Row::template apply<Double>(a, b, p.wide_parameters[0], p.wide_parameters[1]).v;
      if constexpr (C.out == DType::f64) return y;
      else return y != 0;
    } else if constexpr (is_unsigned(C.in)) {
      return static_cast<Out>(
          Row::template apply<Natural>(static_cast<uint64_t>(a), static_cast<uint64_t>(b), 0, 0).value);
    } else {
      return static_cast<Out>(
          Row::template apply<Integer>(static_cast<int64_t>(a), static_cast<int64_t>(b), 0, 0).value);
    }
  }

  struct Raw {
    Vector<In, C.width> a, b;
  };

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    for_tile<C.width, C.tiling>(
        p.shape, item, team,
        [&](const VectorCoord<C.width, C.tiling>& coord) {
          Raw raw;
          raw.a = load_tile<In>(p.a, coord);
          if constexpr (C.binary) raw.b = load_tile<In>(p.b, coord);
          return raw;
        },
        [&](const Raw& raw, const VectorCoord<C.width, C.tiling>& coord) {
          Vector<Out, C.width> y;
#pragma unroll
          for (int k = 0; k < C.width; ++k) y[k] = apply(raw.a[k], C.binary ? raw.b[k] : raw.a[k], p);
          store_tile(p.y, coord, y);
        });
  }
};

}  // namespace cermet::pointwise
