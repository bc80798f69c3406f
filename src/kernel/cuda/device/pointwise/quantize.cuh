// quantize and dequantize, with given scales.
#pragma once

#include "kernel/cuda/device/pointwise/quantize.hpp"
#include "kernel/cuda/device/pointwise/tile.cuh"

namespace cermet::quantize {

/// Scales or offsets of a thread's elements.
template <class T, bool Grouped, class Coord>
CERMET_DEVICE void load_parameters(const TileOperand& operand, const Coord& coord, uint32_t group,
                                   float (&v)[Coord::width]) {
  if constexpr (Grouped) {
    const T* row = coord.template of<const T>(operand.rows) - coord.column;  // [groups]
#pragma unroll
    for (int k = 0; k < Coord::width; ++k)
      v[k] = k < coord.count ? to_float(row[(static_cast<uint32_t>(coord.column) + k) / group]) : 0.0f;
  } else {
    to_floats(load_tile<T>(operand, coord), v);
  }
}

/// Rounds half to even and saturates; NaN gives 0.
template <class T, int Width>
CERMET_DEVICE Vector<T, Width> to_whole(const float (&v)[Width], float low, float high) {
  Vector<T, Width> y;
#pragma unroll
  for (int k = 0; k < Width; ++k)
    y[k] = v[k] != v[k] ? T{0} : static_cast<T>(__float2int_rn(fminf(fmaxf(v[k], low), high)));
  return y;
}
template <DType T, int Width>
CERMET_DEVICE Vector<Element<T>, Width> quantized(const float (&v)[Width]) {
  if constexpr (T == DType::u8) return to_whole<uint8_t>(v, 0.0f, 255.0f);
  else if constexpr (T == DType::u16) return to_whole<uint16_t>(v, 0.0f, 65535.0f);
  else if constexpr (T == DType::i16) return to_whole<int16_t>(v, -32768.0f, 32767.0f);
  else return from_floats<Element<T>>(v);
}

/// Beyond the largest value what the format has there, instead of that value; see op/quantization.hpp.
template <DType T>
CERMET_DEVICE float unsaturated(float v) {
  if constexpr (T == DType::f8_e4m3) return fabsf(v) > 464.0f ? quiet_nan() : v;
  else return fabsf(v) >= 61440.0f ? copysignf(infinity(), v) : v;
}

template <Config C>
struct Raw {
  Vector<Element<C.x>, C.width> x;
  float scale[C.width], offset[C.width], zero_point[C.width];
};

template <Config C>
CERMET_DEVICE Raw<C> load(const Params& p, const VectorCoord<C.width, C.tiling>& coord) {
  Raw<C> raw;
  raw.x = load_tile<Element<C.x>>(p.x, coord);
  load_parameters<float, C.grouped>(p.scale, coord, p.group, raw.scale);
  if constexpr (C.has_offset) load_parameters<Element<C.offset>, C.grouped>(p.offset, coord, p.group, raw.offset);
  if constexpr (C.has_zero_point)
    load_parameters<Element<C.y>, C.grouped>(p.zero_point, coord, p.group, raw.zero_point);
  return raw;
}

/// x / scale + offset or x * scale + offset, each operation rounded, then rounded to the quantized type, where a zero
/// point is added.
template <Config C>
struct QuantizeTask {
  using Params = quantize::Params;
  static constexpr Overlap overlap = Overlap::late;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    using Coord = VectorCoord<C.width, C.tiling>;
    for_tile<C.width, C.tiling>(
        p.shape, item, team, [&](const Coord& coord) { return load<C>(p, coord); },
        [&](const Raw<C>& raw, const Coord& coord) {
          float v[C.width];
          to_floats(raw.x, v);
#pragma unroll
          for (int k = 0; k < C.width; ++k) {
            v[k] = C.multiply ? __fmul_rn(v[k], raw.scale[k]) : __fdiv_rn(v[k], raw.scale[k]);
            if constexpr (C.has_offset) v[k] = __fadd_rn(v[k], raw.offset[k]);
            if constexpr (C.has_zero_point) v[k] = rintf(v[k]) + raw.zero_point[k];
            if constexpr (!C.saturate) v[k] = unsaturated<C.y>(v[k]);
          }
          store_tile(p.y, coord, quantized<C.y>(v));
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
    using Coord = VectorCoord<C.width, C.tiling>;
    for_tile<C.width, C.tiling>(
        p.shape, item, team, [&](const Coord& coord) { return load<C>(p, coord); },
        [&](const Raw<C>& raw, const Coord& coord) {
          float v[C.width];
          to_floats(raw.x, v);
#pragma unroll
          for (int k = 0; k < C.width; ++k) {
            if constexpr (C.has_offset) v[k] -= raw.offset[k];
            v[k] = C.multiply ? v[k] * raw.scale[k] : v[k] / raw.scale[k];
          }
          store_tile(p.y, coord, from_floats<Element<C.y>>(v));
        });
  }
};

}  // namespace cermet::quantize
