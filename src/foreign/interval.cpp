#include "foreign/interval.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace cermet::foreign {
namespace {

__extension__ using Wide = __int128;

std::int64_t clamped(Wide value) {
  return static_cast<std::int64_t>(std::clamp<Wide>(value, -Interval::any, Interval::any));
}

Interval hull(const std::array<Wide, 4>& corners) {
  const auto [least, most] = std::ranges::minmax(corners);
  return {clamped(least), clamped(most)};
}

}  // namespace

Interval operator+(const Interval& a, const Interval& b) {
  return {clamped(Wide{a.least} + b.least), clamped(Wide{a.most} + b.most)};
}
Interval operator-(const Interval& a, const Interval& b) {
  return {clamped(Wide{a.least} - b.most), clamped(Wide{a.most} - b.least)};
}

Interval operator*(const Interval& a, const Interval& b) {
  return hull({Wide{a.least} * b.least, Wide{a.least} * b.most, Wide{a.most} * b.least, Wide{a.most} * b.most});
}

Interval operator/(const Interval& a, const Interval& b) {
  if (b.contains(0))
    fail(Status::invalid_argument, "division: expected a divisor that is never 0, found one from {} to {}", b.least,
         b.most);
  return hull({Wide{a.least} / b.least, Wide{a.least} / b.most, Wide{a.most} / b.least, Wide{a.most} / b.most});
}

Interval operator%(const Interval& a, const Interval& b) {
  if (b.contains(0))
    fail(Status::invalid_argument, "remainder: expected a divisor that is never 0, found one from {} to {}", b.least,
         b.most);
  if (a.is_exact() && b.is_exact()) return Interval::exactly(a.least % b.least);
  const std::int64_t largest = std::max(std::abs(b.least), std::abs(b.most)) - 1;
  if (a.least >= 0 && a.most < std::min(std::abs(b.least), std::abs(b.most))) return a;
  return {a.least >= 0 ? 0 : -largest, a.most <= 0 ? 0 : largest};
}

Interval less(const Interval& a, const Interval& b) { return {a.most < b.least, a.least < b.most}; }
Interval equal(const Interval& a, const Interval& b) {
  return {a.is_exact() && a == b, a.least <= b.most && b.least <= a.most};
}
Interval minimum(const Interval& a, const Interval& b) {
  return {std::min(a.least, b.least), std::min(a.most, b.most)};
}
Interval maximum(const Interval& a, const Interval& b) {
  return {std::max(a.least, b.least), std::max(a.most, b.most)};
}

}  // namespace cermet::foreign
