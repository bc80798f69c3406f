// The functions that rows of pointwise.inc may use, for double; those for integers are in wrapping.hpp. Kernels provide
// the same names for their value types.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "op/wrapping.hpp"

namespace cermet {

inline double maximum(double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b); }
inline double minimum(double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b); }
inline double select(bool condition, double yes, double no) { return condition ? yes : no; }
inline double nearest(double x) { return std::nearbyint(x); }
/// e^-|x|. Kernels may give 0 where it is below 2^-126.
inline double exp_of_negative_abs(double x) { return std::exp(-std::abs(x)); }
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
/// Probability that a standard normal variable is at most x.
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
/// sqrt(2 / pi) (x + 0.044715 x^3)
inline double gelu_tanh_argument(double x) { return std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x); }
/// The remainder of the truncated quotient, which has the sign of a; exact.
inline double trunc_mod(double a, double b) { return std::fmod(a, b); }
/// The remainder of the quotient rounded down, which has the sign of b: as numpy.mod.
inline double floor_mod(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(remainder, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;  // NaN stays
}

}  // namespace cermet
