// The functions that rows of pointwise.inc may use, for double and for Integer. Kernels provide the same names for their own value type.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <numbers>

namespace cermet {

/// A 64-bit integer whose arithmetic wraps, so that every input has a defined result. Booleans are 0 and 1.
struct Integer {
  std::int64_t value;

  Integer(std::int64_t v) : value(v) {}  // NOLINT(google-explicit-constructor): reads like a number
  static Integer wrap(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }
  friend Integer operator+(Integer a, Integer b) { return wrap(static_cast<std::uint64_t>(a.value) + static_cast<std::uint64_t>(b.value)); }
  friend Integer operator-(Integer a, Integer b) { return wrap(static_cast<std::uint64_t>(a.value) - static_cast<std::uint64_t>(b.value)); }
  friend Integer operator*(Integer a, Integer b) { return wrap(static_cast<std::uint64_t>(a.value) * static_cast<std::uint64_t>(b.value)); }
  friend Integer operator-(Integer a) { return 0 - a; }
  friend auto operator<=>(Integer a, Integer b) = default;  // NOLINT(modernize-use-nullptr): clang-tidy takes the 0 it compares with for a pointer
};

inline Integer abs(Integer x) { return x < 0 ? -x : x; }
inline Integer maximum(Integer a, Integer b) { return a > b ? a : b; }
inline Integer minimum(Integer a, Integer b) { return a < b ? a : b; }
inline Integer select(bool condition, Integer yes, Integer no) { return condition ? yes : no; }

inline double maximum(double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b); }
inline double minimum(double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b); }
inline double select(bool condition, double yes, double no) { return condition ? yes : no; }
inline double nearest(double x) { return std::nearbyint(x); }
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
/// Probability that a standard normal variable is at most x.
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
/// sqrt(2 / pi) (x + 0.044715 x^3)
inline double gelu_tanh_argument(double x) { return std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x); }

}  // namespace cermet
