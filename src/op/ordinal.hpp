// The order in which elements rank, as integers: shared by topk, argmax, unique and their kernels.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>

#include "format/fp8.hpp"
#include "format/half.hpp"

namespace cermet {

/// An integer that orders like the number: -0 equals +0, NaN is above everything.
inline std::int64_t ordinal(float x) {
  if (x != x) return std::numeric_limits<std::int64_t>::max();
  const auto bits = static_cast<std::int32_t>(format::float_bits(x));
  return bits >= 0 ? bits : -static_cast<std::int64_t>(bits & 0x7fffffff);
}
inline std::int64_t ordinal(double x) {
  if (x != x) return std::numeric_limits<std::int64_t>::max();
  const auto bits = std::bit_cast<std::int64_t>(x);
  return bits >= 0 ? bits : -(bits & std::numeric_limits<std::int64_t>::max());
}
inline std::int64_t ordinal(format::bf16 x) { return ordinal(format::to_float(x)); }
inline std::int64_t ordinal(format::f16 x) { return ordinal(format::to_float(x)); }
inline std::int64_t ordinal(format::e4m3 x) { return ordinal(format::to_float(x)); }
inline std::int64_t ordinal(format::e5m2 x) { return ordinal(format::to_float(x)); }
template <std::integral T>
std::int64_t ordinal(T x) {
  if constexpr (std::same_as<T, std::uint64_t>) return static_cast<std::int64_t>(x ^ std::uint64_t{1} << 63);
  else return static_cast<std::int64_t>(x);
}

}  // namespace cermet
