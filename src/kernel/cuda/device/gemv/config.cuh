// Compile-time configuration of GEMVs, matrix products of few rows.
#pragma once

#include "kernel/cuda/device/gemm/activation.cuh"
#include "kernel/cuda/device/gemv/params.hpp"
#include "kernel/cuda/device/gemv/shape.hpp"
#include "kernel/cuda/device/types.cuh"

namespace cermet::gemv {

/// Scales of a quantized GEMV: none or one for each row and column; one for each 128 reduction steps.
enum class Scaling : uint8_t { none, rows, blocks };

/// What is done to a row of x on its way into registers. Every block does it for itself; the first one stores `sum`.
struct Prologue {
  bool norm = false;  ///< rms_norm(x + delta) * (norm_weight + norm_offset)
  DType delta = DType::f32, weight = DType::f32, sum = DType::f32;
};

struct Config {
  int k;  ///< reduction length
  DType x, w, out;
  DType bias = DType::f32, bias_up = DType::f32, residual = DType::f32;  ///< where they are given
  DType offsets = DType::i32;
  Scaling scaling = Scaling::none;
  bool dual = false;  ///< a second weight; its product is multiplied with the activated first one
  Activation activation = Activation::identity;
  bool grouped = false, zero_point = false;
  bool stream = false;  ///< weights come through stages in shared memory (sm_90 on)
  Prologue prologue = {};
};

template <Config C>
inline constexpr bool integer = C.w == DType::i8;
/// Sums of products.
template <bool Integer>
struct SumOf {
  using type = float;
};
template <>
struct SumOf<true> {
  using type = int32_t;
};
template <Config C>
using Sum = typename SumOf<integer<C>>::type;

}  // namespace cermet::gemv
