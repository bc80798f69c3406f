// The grid of a quantized type: the values that it represents before scaling.
#pragma once

#include <algorithm>

#include "base/dtype.hpp"
#include "format/fp8.hpp"
#include "model/linear_scheme.hpp"

namespace cermet {

struct QuantizationGrid {
  DType dtype = DType::i8;  ///< i8 or f8_e4m3
  float range = 127.5f;     ///< the largest absolute value divided by this is the scale without clipping
  float low = -128, high = 127;

  bool is_fp8() const { return dtype == DType::f8_e4m3; }
  /// int8 values: -128..127 for a range of 127.5, -127..127 for one of 127.
  static QuantizationGrid int8(double range) {
    return {DType::i8, static_cast<float>(range), range > 127 ? -128.0f : -127.0f, 127.0f};
  }
  static QuantizationGrid fp8() { return {DType::f8_e4m3, format::e4m3_max, -format::e4m3_max, format::e4m3_max}; }
  /// Of a scheme that quantizes.
  static QuantizationGrid of(const LinearScheme& scheme, double int8_range) {
    return scheme.weight == LinearScheme::Weight::fp8 ? fp8() : int8(int8_range);
  }
};

/// The integer next to a value of at most 2^22, ties to even; what a vectorising compiler understands.
inline float round_to_integer(float x) {
  constexpr float anchor = 12582912.0f;  // 1.5 * 2^23: its last bit is worth 1
  return (x + anchor) - anchor;
}

/// The e4m3 value next to a finite x, ties to even, saturated; what a vectorising compiler understands.
inline float round_to_e4m3(float x) {
  const float magnitude = std::min(__builtin_fabsf(x), format::e4m3_max);
  const float power = std::max(format::float_from_bits(format::float_bits(magnitude) & 0x7f800000u),
                               0.015625f);  // 2^floor(log2), at least 2^-6
  const float anchor = power * 1048576.0f;  // 2^20: its last bit is worth power / 8
  return __builtin_copysignf((magnitude + anchor) - anchor, x);
}

}  // namespace cermet
