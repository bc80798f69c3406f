// quantize: codes from values with given scales; dequantize: values from codes.
#pragma once

#include "kernel/cuda/device/pointwise/quantize.hpp"
#include "kernel/cuda/device/pointwise/tile.cuh"

namespace cermet::quantize {

struct Config {
  DType x = DType::f32, y = DType::i8;
  bool multiply = false;  ///< by the scale, not divide
  bool has_offset = false;
  DType offset = DType::f32;
  bool grouped = false;  ///< scales and offsets go by groups of columns
  int width = 4;
};

/// Scales or offsets of a thread's elements.
template <class T, bool Grouped, int Width>
__device__ __forceinline__ void load_parameters(const TileOperand& operand, const TilePlace<Width>& place, uint32_t group, float (&v)[Width]) {
  if constexpr (Grouped) {
    const T* row = row_of<const T>(operand.rows, place.index);  // [groups]
#pragma unroll
    for (int k = 0; k < Width; ++k) v[k] = k < place.count ? to_float(row[(static_cast<uint32_t>(place.column) + k) / group]) : 0.0f;
  } else {
    to_floats(load_tile<T>(operand, place), v);
  }
}

/// x / scale + offset or x * scale + offset, each operation rounded, then rounded to a code.
template <Config C>
struct QuantizeTask {
  using Params = quantize::Params;

  static __device__ void run(const Params& p, uint32_t item, char*) {
    const TilePlace<C.width> place(p.shape, item);
    if (place.count == 0) return;
    float v[C.width], scale[C.width], offset[C.width];
    to_floats(load_tile<Element<C.x>>(p.x, place), v);
    load_parameters<float, false>(p.scale, place, 0, scale);
    if constexpr (C.has_offset) load_parameters<Element<C.offset>, false>(p.offset, place, 0, offset);
#pragma unroll
    for (int k = 0; k < C.width; ++k) {
      v[k] = C.multiply ? __fmul_rn(v[k], scale[k]) : __fdiv_rn(v[k], scale[k]);
      if constexpr (C.has_offset) v[k] = __fadd_rn(v[k], offset[k]);
    }
    store_tile(p.y, place, from_floats<Element<C.y>>(v));
  }
};

/// (q - offset) * scale, or (q - offset) / scale.
template <Config C>
struct DequantizeTask {
  using Params = quantize::Params;

  static __device__ void run(const Params& p, uint32_t item, char*) {
    const TilePlace<C.width> place(p.shape, item);
    if (place.count == 0) return;
    float v[C.width], scale[C.width], offset[C.width];
    to_floats(load_tile<Element<C.x>>(p.x, place), v);
    load_parameters<float, C.grouped>(p.scale, place, p.group, scale);
    if constexpr (C.has_offset) load_parameters<Element<C.offset>, C.grouped>(p.offset, place, p.group, offset);
#pragma unroll
    for (int k = 0; k < C.width; ++k) {
      if constexpr (C.has_offset) v[k] -= offset[k];
      v[k] = C.multiply ? v[k] * scale[k] : v[k] / scale[k];
    }
    store_tile(p.y, place, from_floats<Element<C.y>>(v));
  }
};

}  // namespace cermet::quantize
