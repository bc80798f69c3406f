// 8-bit floating formats that are stored and cast, but not computed with: e4m3fnuz and e5m2fnuz (finite, one zero, one
// NaN: 0x80) and e8m0, the scale of the OCP microscaling formats: powers of two from 2^-127 to 2^127, and NaN.
#pragma once

#include "format/fp8.hpp"

namespace cermet::format {

struct e4m3fnuz {
  unsigned char bits;
};
struct e5m2fnuz {
  unsigned char bits;
};
struct e8m0 {
  unsigned char bits;
};

/// How a value becomes one of a type with wide steps: towards zero, to the nearest, or away from zero.
enum class Rounding { zero, nearest, up };

CERMET_HOST_DEVICE inline float to_float(e4m3fnuz x) {
  const cermet_u32 sign = static_cast<cermet_u32>(x.bits & 0x80u) << 24, exponent = (x.bits >> 3) & 0xfu,
                   fraction = x.bits & 7u;
  if (x.bits == 0x80u) return float_from_bits(0x7fc00000u);
  if (exponent != 0) return float_from_bits(sign | ((exponent + 119u) << 23) | (fraction << 20));
  const float subnormal = static_cast<float>(fraction) * 0.0009765625f;  // 2^-10
  return sign ? -subnormal : subnormal;
}

CERMET_HOST_DEVICE inline float to_float(e5m2fnuz x) {
  const cermet_u32 sign = static_cast<cermet_u32>(x.bits & 0x80u) << 24, exponent = (x.bits >> 2) & 0x1fu,
                   fraction = x.bits & 3u;
  if (x.bits == 0x80u) return float_from_bits(0x7fc00000u);
  if (exponent != 0) return float_from_bits(sign | ((exponent + 111u) << 23) | (fraction << 21));
  const float subnormal = static_cast<float>(fraction) * 7.62939453125e-6f;  // 2^-17
  return sign ? -subnormal : subnormal;
}

CERMET_HOST_DEVICE inline float to_float(e8m0 x) {
  if (x.bits == 0xffu) return float_from_bits(0x7fc00000u);
  return float_from_bits(x.bits == 0 ? 0x00400000u : static_cast<cermet_u32>(x.bits) << 23);  // 2^-127 is subnormal
}

/// To nearest even; finite values saturate, the others become NaN, and zero has no sign.
CERMET_HOST_DEVICE inline unsigned char to_fnuz(float x, int mantissa, int min_exponent) {
  const cermet_u32 bits = float_bits(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return 0x80u;
  const cermet_u32 code = round_to_minifloat(magnitude, mantissa, min_exponent);
  return static_cast<unsigned char>(code == 0 ? 0u : sign | (code > 0x7fu ? 0x7fu : code));
}
CERMET_HOST_DEVICE inline e4m3fnuz to_e4m3fnuz(float x) { return {to_fnuz(x, 3, -7)}; }
CERMET_HOST_DEVICE inline e5m2fnuz to_e5m2fnuz(float x) { return {to_fnuz(x, 2, -15)}; }

/// Finite values saturate, zeros to 2^-127; negative values, infinities and NaN become NaN. Ties go up.
CERMET_HOST_DEVICE inline e8m0 to_e8m0(float x, Rounding rounding) {
  const cermet_u32 bits = float_bits(x);
  if (bits == 0x80000000u) return {0};
  if (bits >= 0x7f800000u) return {0xff};
  if (bits <= 0x00400000u) return {0};
  const cermet_u32 exponent = bits >> 23, fraction = exponent != 0 ? bits & 0x7fffffu : (bits - 0x00400000u) << 1;
  const bool is_up =
      rounding == Rounding::up ? fraction != 0 : rounding == Rounding::nearest && fraction >= 0x00400000u;
  const cermet_u32 code = exponent + (is_up ? 1u : 0u);
  return {static_cast<unsigned char>(code > 0xfeu ? 0xfeu : code)};
}

}  // namespace cermet::format
