// From sums of products to a result in memory: scales, bias, activation, residual, one rounding.
#pragma once

#include "kernel/cuda/device/gemv/config.cuh"

namespace cermet::gemv {

/// What a result needs besides its sums; loaded well before they are ready.
struct Factors {
  float bias = 0, bias_up = 0, residual = 0, w_scale = 1, w_up_scale = 1;
  int32_t integer_bias = 0;
};

template <DType T>
__device__ __forceinline__ float load_real(const void* data, int64_t index) {
  return data == nullptr ? 0.0f : to_float(static_cast<const Element<T>*>(data)[index]);
}

template <Config C>
__device__ __forceinline__ Factors load_factors(const Params& p, int row, int column, int group) {
  Factors f;
  if constexpr (integer<C> && C.bias == DType::i32) {
    if (p.bias != nullptr) f.integer_bias = static_cast<const int32_t*>(p.bias)[group * p.bias_group_stride + column];
  } else {
    f.bias = load_real<C.bias>(p.bias, group * p.bias_group_stride + column);
  }
  if constexpr (C.dual) f.bias_up = load_real<C.bias_up>(p.bias_up, column);
  else f.residual = load_real<C.residual>(p.residual, row * p.residual_stride + column);
  if constexpr (C.scaling == Scaling::rows) {
    const int64_t at = group * p.w_scale_group_stride + column / p.w_scale_columns * p.w_scale_stride;
    if (p.w_scale != nullptr) f.w_scale = p.w_scale[at];
    if (C.dual && p.w_up_scale != nullptr) f.w_up_scale = p.w_up_scale[at];
  }
  return f;
}

/// The steps of scaled_mm, each rounded to float32; they must not be contracted, so that int8 gives every kernel's bits.
__device__ __forceinline__ float scaled(float sum, float w_scale, float x_scale) { return __fmul_rn(x_scale, __fmul_rn(w_scale, sum)); }

/// Result [row, column] from the sums of its products. `value` and `up` are scaled already where scales cover blocks.
template <Config C, class S>
__device__ __forceinline__ void store_result(const Params& p, int row, int column, const Factors& f, float x_scale, S value, S up) {
  using Out = Element<C.out>;
  Out* const y = static_cast<Out*>(p.y) + row * p.y_stride + column;
  if constexpr (C.out == DType::i32) {
    *y = static_cast<int32_t>(static_cast<uint32_t>(value) + static_cast<uint32_t>(f.integer_bias));
  } else {
    float v;
    if constexpr (C.scaling == Scaling::rows) {
      S biased = value;
      if constexpr (integer<C>) biased = static_cast<int32_t>(static_cast<uint32_t>(value) + static_cast<uint32_t>(f.integer_bias));
      v = scaled(static_cast<float>(biased), f.w_scale, x_scale);
    } else {
      v = static_cast<float>(value);
    }
    if (C.bias != DType::i32 && p.bias != nullptr) v = __fadd_rn(v, f.bias);
    if constexpr (C.dual) {
      float u = C.scaling == Scaling::rows ? scaled(static_cast<float>(up), f.w_up_scale, x_scale) : static_cast<float>(up);
      if (p.bias_up != nullptr) u = __fadd_rn(u, f.bias_up);
      v = activate<C.activation>(v) * u;
    } else if (p.residual != nullptr) {
      v = __fadd_rn(v, f.residual);
    }
    if constexpr (C.out == DType::i8) {
      const float code = __fdiv_rn(v, *p.out_scale);
      *y = code != code ? int8_t{0} : from_float<int8_t>(code);
    } else {
      *y = from_float<Out>(v);
    }
  }
}

}  // namespace cermet::gemv
