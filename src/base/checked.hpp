// Integer arithmetic that reports overflow, for sizes that come from files and users.
#pragma once

#include <cstdint>
#include <optional>

namespace cermet {

/// a * b, or nothing on overflow.
inline std::optional<std::int64_t> checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

/// a + b, or nothing on overflow.
inline std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

/// Smallest multiple of `multiple` that is >= value; both non-negative, multiple > 0.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
/// value / divisor rounded up.
constexpr std::int64_t div_up(std::int64_t value, std::int64_t divisor) { return (value + divisor - 1) / divisor; }

}  // namespace cermet
