// 8-bit floating formats of the OCP specification: e4m3 (finite: no infinities, maximum 448) and e5m2 (IEEE-like,
// maximum 57344). Encoding rounds to nearest even and saturates finite values; NaN stays NaN, infinity becomes NaN in
// e4m3.
#pragma once

#include "format/half.hpp"

namespace cermet::format {

struct e4m3 {
  unsigned char bits;
};
struct e5m2 {
  unsigned char bits;
};

inline constexpr float e4m3_max = 448.0f;
inline constexpr float e5m2_max = 57344.0f;

CERMET_HOST_DEVICE inline float to_float(e5m2 x) { return to_float(f16{static_cast<cermet_u16>(x.bits << 8)}); }

CERMET_HOST_DEVICE inline float to_float(e4m3 x) {
  const cermet_u32 sign = static_cast<cermet_u32>(x.bits & 0x80u) << 24, exponent = (x.bits >> 3) & 0xfu,
                   fraction = x.bits & 7u;
  if (exponent == 15u && fraction == 7u) return float_from_bits(sign | 0x7fc00000u);
  if (exponent != 0) return float_from_bits(sign | ((exponent + 120u) << 23) | (fraction << 20));
  const float subnormal = static_cast<float>(fraction) * 0.001953125f;  // 2^-9
  return sign ? -subnormal : subnormal;
}

/// Rounds |x| to a minifloat of `mantissa` bits whose smallest normal exponent is `min_exponent`; returns its unsigned
/// code.
CERMET_HOST_DEVICE inline cermet_u32 round_to_minifloat(cermet_u32 magnitude, int mantissa, int min_exponent) {
  const cermet_u32 smallest_normal = static_cast<cermet_u32>(min_exponent + 127) << 23;
  if (magnitude < smallest_normal) {  // adding 2^(min_exponent + 23 - mantissa) aligns the last kept bit with the last
                                      // bit of a float
    const float anchor = float_from_bits(static_cast<cermet_u32>(min_exponent + 23 - mantissa + 127) << 23);
    return float_bits(float_from_bits(magnitude) + anchor) - float_bits(anchor);
  }
  const int drop = 23 - mantissa;
  const cermet_u32 rounded = magnitude + (1u << (drop - 1)) - 1u + ((magnitude >> drop) & 1u);
  return (rounded - smallest_normal + (1u << 23)) >> drop;
}

CERMET_HOST_DEVICE inline e4m3 to_e4m3(float x) {
  const cermet_u32 bits = float_bits(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return {static_cast<unsigned char>(sign | 0x7fu)};
  const cermet_u32 code = round_to_minifloat(magnitude, 3, -6);
  return {static_cast<unsigned char>(sign | (code > 0x7eu ? 0x7eu : code))};
}

CERMET_HOST_DEVICE inline e5m2 to_e5m2(float x) {
  const cermet_u32 bits = float_bits(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<unsigned char>(sign | 0x7fu)};
  if (magnitude == 0x7f800000u) return {static_cast<unsigned char>(sign | 0x7cu)};
  const cermet_u32 code = round_to_minifloat(magnitude, 2, -14);
  return {static_cast<unsigned char>(sign | (code > 0x7bu ? 0x7bu : code))};
}

}  // namespace cermet::format
