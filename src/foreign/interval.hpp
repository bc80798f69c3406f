// Integers between two bounds, and what arithmetic makes of them: whether a condition holds for every size that a
// dimension may take.
#pragma once

#include <cstdint>

namespace cermet::foreign {

/// Both ends included. Bounds beyond 2^62 stand for "any".
struct Interval {
  std::int64_t least = 0, most = 0;

  static constexpr std::int64_t any = std::int64_t{1} << 62;
  static Interval exactly(std::int64_t value) { return {value, value}; }
  bool is_exact() const { return least == most; }
  bool contains(std::int64_t value) const { return least <= value && value <= most; }
  /// As a condition.
  bool always() const { return !contains(0); }
  bool never() const { return least == 0 && most == 0; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

Interval operator+(const Interval& a, const Interval& b);
Interval operator-(const Interval& a, const Interval& b);
Interval operator*(const Interval& a, const Interval& b);
/// Rounded towards 0. Throws Error where the divisor may be 0.
Interval operator/(const Interval& a, const Interval& b);
Interval operator%(const Interval& a, const Interval& b);
Interval less(const Interval& a, const Interval& b);
Interval equal(const Interval& a, const Interval& b);
Interval minimum(const Interval& a, const Interval& b);
Interval maximum(const Interval& a, const Interval& b);

}  // namespace cermet::foreign
