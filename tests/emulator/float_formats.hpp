// Numbers of few bits, rounded as instructions round them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace cermet::emulator {

/// A binary format: bits of exponent and mantissa, and whether its largest exponent has infinities.
struct FloatFormat {
  int exponent_bits, mantissa_bits;
  bool has_infinity;
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
inline constexpr FloatFormat half_format{5, 10, true}, bfloat_format{8, 7, true}, e4m3_format{4, 3, false},
    e5m2_format{5, 2, true};

enum class Rounding : std::uint8_t { nearest, zero, down, up };

inline double round_integer(double x, Rounding r) {
  switch (r) {
    case Rounding::zero: return std::trunc(x);
    case Rounding::down: return std::floor(x);
    case Rounding::up: return std::ceil(x);
    default: return std::nearbyint(x);
  }
}

inline double decode_float(std::uint32_t bits, FloatFormat f) {
  const bool negative = bits >> (f.exponent_bits + f.mantissa_bits) & 1;
  const int exponent = static_cast<int>(bits >> f.mantissa_bits) & ((1 << f.exponent_bits) - 1);
  const std::uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
  const bool largest = exponent == (1 << f.exponent_bits) - 1;
  double value = 0;
  if (largest && f.has_infinity) value = mantissa ? NAN : INFINITY;
  else if (largest && mantissa == (1u << f.mantissa_bits) - 1) value = NAN;
  else if (exponent == 0) value = std::ldexp(mantissa, 1 - f.bias() - f.mantissa_bits);
  else value = std::ldexp(mantissa | 1u << f.mantissa_bits, exponent - f.bias() - f.mantissa_bits);
  return negative ? -value : value;
}

/// What does not fit becomes infinite, or the largest number where that is asked for.
inline std::uint32_t encode_float(double x, FloatFormat f, Rounding rounding, bool saturates) {
  const std::uint32_t sign = std::signbit(x) ? 1u << (f.exponent_bits + f.mantissa_bits) : 0;
  const std::uint32_t top = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  const std::uint32_t nan = f.has_infinity ? top | ((1u << f.mantissa_bits) - 1) : top | ((1u << f.mantissa_bits) - 1);
  if (std::isnan(x)) return nan;
  const std::uint32_t largest = f.has_infinity ? top - 1 : nan - 1;
  const double magnitude = std::fabs(x);
  if (std::isinf(x)) return sign | (saturates ? largest : f.has_infinity ? top : nan);
  if (magnitude == 0) return sign;
  int exponent = std::ilogb(magnitude);
  if (exponent < 1 - f.bias()) exponent = 1 - f.bias();
  const double steps = round_integer(std::ldexp(magnitude, f.mantissa_bits - exponent), rounding);
  // Steps of the exponent at hand: a carry moves on to the next by itself.
  const auto whole = static_cast<std::uint32_t>(steps);
  const std::uint32_t normal = whole >> f.mantissa_bits ? static_cast<std::uint32_t>(exponent + f.bias() - 1) : 0;
  const std::uint32_t bits = (normal << f.mantissa_bits) + whole;
  if (bits > largest) return sign | (saturates || rounding == Rounding::zero ? largest : f.has_infinity ? top : nan);
  return sign | bits;
}

inline float half_to_float(std::uint16_t bits) { return static_cast<float>(decode_float(bits, half_format)); }
inline std::uint16_t float_to_half(double x) {
  return static_cast<std::uint16_t>(encode_float(x, half_format, Rounding::nearest, false));
}
inline float bfloat_to_float(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
inline std::uint16_t float_to_bfloat(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (x != x) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace cermet::emulator
