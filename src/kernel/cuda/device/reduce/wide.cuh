// 128-bit integers, as far as exact sums and clamped products of 64-bit ones need them.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

struct Wide {
  uint64_t low = 0;
  int64_t high = 0;

  static CERMET_DEVICE Wide of(int64_t x) { return {static_cast<uint64_t>(x), x >> 63}; }
  static CERMET_DEVICE Wide of(uint64_t x) { return {x, 0}; }
  static CERMET_DEVICE Wide product(int64_t a, int64_t b) {
    return {static_cast<uint64_t>(a) * static_cast<uint64_t>(b), __mul64hi(a, b)};
  }
  friend CERMET_DEVICE Wide operator+(Wide a, Wide b) {
    const uint64_t low = a.low + b.low;
    return {low, a.high + b.high + (low < a.low ? 1 : 0)};
  }
  CERMET_DEVICE Wide negated() const { return {~low + 1, ~high + (low == 0 ? 1 : 0)}; }
  /// The nearest value of [low, high].
  CERMET_DEVICE int64_t clamped(int64_t least, int64_t most) const {
    const bool fits = high == static_cast<int64_t>(low) >> 63;
    if (!fits) return high < 0 ? least : most;
    const auto x = static_cast<int64_t>(low);
    return x < least ? least : x > most ? most : x;
  }
};

/// a / b rounded to nearest, half to even, for b > 0.
__device__ inline Wide rounded_quotient(Wide a, int64_t b) {
  const bool negative = a.high < 0;
  if (negative) a = a.negated();
  const auto divisor = static_cast<uint64_t>(b);
  uint64_t low = 0, high = 0, remainder = 0;
  for (int bit = 127; bit >= 0; --bit) {
    const uint64_t next = bit >= 64 ? static_cast<uint64_t>(a.high) >> (bit - 64) & 1u : a.low >> bit & 1u;
    remainder = remainder << 1 | next;  // below 2^64: the divisor is below 2^63
    if (remainder < divisor) continue;
    remainder -= divisor;
    (bit >= 64 ? high : low) |= uint64_t{1} << bit % 64;
  }
  Wide result{low, static_cast<int64_t>(high)};
  if (remainder > divisor - remainder || (remainder == divisor - remainder && (low & 1u))) result = result + Wide{1, 0};
  return negative ? result.negated() : result;
}

}  // namespace cermet
