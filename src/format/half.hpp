// 16-bit floating formats: encode (to nearest even) and decode, readable by host and device compilers.
#pragma once

#if defined(__CUDACC_RTC__)
using cermet_u16 = unsigned short;
using cermet_u32 = unsigned int;
#else
#include <cstdint>
using cermet_u16 = std::uint16_t;
using cermet_u32 = std::uint32_t;
#endif

#if defined(__CUDACC__)
#define CERMET_HOST_DEVICE __host__ __device__
#else
#define CERMET_HOST_DEVICE
#endif

namespace cermet::format {

CERMET_HOST_DEVICE inline cermet_u32 float_bits(float value) { return __builtin_bit_cast(cermet_u32, value); }
CERMET_HOST_DEVICE inline float float_from_bits(cermet_u32 bits) { return __builtin_bit_cast(float, bits); }

/// bfloat16: the upper half of a float.
struct bf16 {
  cermet_u16 bits;
};

CERMET_HOST_DEVICE inline float to_float(bf16 x) { return float_from_bits(static_cast<cermet_u32>(x.bits) << 16); }

CERMET_HOST_DEVICE inline bf16 to_bf16(float x) {
  const cermet_u32 bits = float_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<cermet_u16>((bits >> 16) | 0x40u)};  // keep NaN a NaN
  return {static_cast<cermet_u16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

/// IEEE binary16.
struct f16 {
  cermet_u16 bits;
};

CERMET_HOST_DEVICE inline float to_float(f16 x) {
  const cermet_u32 sign = static_cast<cermet_u32>(x.bits & 0x8000u) << 16;
  const cermet_u32 exponent = (x.bits >> 10) & 0x1fu, fraction = x.bits & 0x3ffu;
  if (exponent == 0x1fu) return float_from_bits(sign | 0x7f800000u | (fraction << 13) | (fraction ? 0x400000u : 0u));
  if (exponent != 0) return float_from_bits(sign | ((exponent + 112u) << 23) | (fraction << 13));
  const float subnormal = static_cast<float>(fraction) * 5.9604644775390625e-8f;  // 2^-24
  return sign ? -subnormal : subnormal;
}

CERMET_HOST_DEVICE inline f16 to_f16(float x) {
  const cermet_u32 bits = float_bits(x);
  const cermet_u32 sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<cermet_u16>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu))};
  if (magnitude >= 0x477ff000u) return {static_cast<cermet_u16>(sign | 0x7c00u)};  // 65520 and above round to infinity
  if (magnitude <
      0x38800000u) {  // below 2^-14: adding 0.5 aligns the fraction so that the hardware rounds to 2^-24 steps
    const cermet_u32 aligned = float_bits(float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
    return {static_cast<cermet_u16>(sign | aligned)};
  }
  return {static_cast<cermet_u16>(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13))};
}

}  // namespace cermet::format
