// quantize and dequantize, with given scales.
#pragma once

#include "kernel/cuda/device/pointwise/quantize.hpp"
#include "kernel/cuda/device/pointwise/tile.cuh"

namespace cermet::quantize {

struct Config {
  Tiling tiling = Tiling::general;
  DType x = DType::f32, y = DType::i8;
  bool multiply = false;  ///< by the scale, not divide
  bool has_offset = false;
  DType offset = DType::f32;
  bool grouped = false;  ///< scales and offsets go by groups of columns
  int width = 4;
};

/// Scales or offsets of a thread's elements.
template <class T, bool Grouped, class Place>
__device__ __forceinline__ void load_parameters(const TileOperand& operand, const Place& place, uint32_t group, float (&v)[Place::width]) {
  if constexpr (Grouped) {
    const T* row = place.template of<const T>(operand.rows) - place.column;  // [groups]
#pragma unroll
    for (int k = 0; k < Place::width; ++k) v[k] = k < place.count ? to_float(row[(static_cast<uint32_t>(place.column) + k) / group]) : 0.0f;
  } else {
    to_floats(load_tile<T>(operand, place), v);
  }
}

template <Config C>
struct Raw {
  Vector<Element<C.x>, C.width> x;
  float scale[C.width], offset[C.width];
};

template <Config C>
__device__ __forceinline__ Raw<C> load(const Params& p, const TilePlace<C.width, C.tiling>& place) {
  Raw<C> raw;
  raw.x = load_tile<Element<C.x>>(p.x, place);
  load_parameters<float, C.grouped>(p.scale, place, p.group, raw.scale);
  if constexpr (C.has_offset) load_parameters<Element<C.offset>, C.grouped>(p.offset, place, p.group, raw.offset);
  return raw;
}

/// x / scale + offset or x * scale + offset, each operation rounded, then rounded to the quantized type.
template <Config C>
struct QuantizeTask {
  using Params = quantize::Params;
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    using Place = TilePlace<C.width, C.tiling>;
    for_tile<C.width, C.tiling>(
        p.shape, item, team, [&](const Place& place) { return load<C>(p, place); },
        [&](const Raw<C>& raw, const Place& place) {
          float v[C.width];
          to_floats(raw.x, v);
#pragma unroll
          for (int k = 0; k < C.width; ++k) {
            v[k] = C.multiply ? __fmul_rn(v[k], raw.scale[k]) : __fdiv_rn(v[k], raw.scale[k]);
            if constexpr (C.has_offset) v[k] = __fadd_rn(v[k], raw.offset[k]);
          }
          store_tile(p.y, place, from_floats<Element<C.y>>(v));
        });
  }
};

/// (q - offset) * scale, or (q - offset) / scale.
template <Config C>
struct DequantizeTask {
  using Params = quantize::Params;
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    using Place = TilePlace<C.width, C.tiling>;
    for_tile<C.width, C.tiling>(
        p.shape, item, team, [&](const Place& place) { return load<C>(p, place); },
        [&](const Raw<C>& raw, const Place& place) {
          float v[C.width];
          to_floats(raw.x, v);
#pragma unroll
          for (int k = 0; k < C.width; ++k) {
            if constexpr (C.has_offset) v[k] -= raw.offset[k];
            v[k] = C.multiply ? v[k] * raw.scale[k] : v[k] / raw.scale[k];
          }
          store_tile(p.y, place, from_floats<Element<C.y>>(v));
        });
  }
};

}  // namespace cermet::quantize
