// The functions that rows of pointwise.inc may use, for double.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

/// A double that functions of namespace cermet are looked up for.
struct Double {
  double v;

  CERMET_DEVICE constexpr Double(double x) : v(x) {}
  CERMET_DEVICE constexpr Double(int x) : v(x) {}
  friend CERMET_DEVICE Double operator+(Double a, Double b) { return a.v + b.v; }
  friend CERMET_DEVICE Double operator-(Double a, Double b) { return a.v - b.v; }
  friend CERMET_DEVICE Double operator*(Double a, Double b) { return a.v * b.v; }
  friend CERMET_DEVICE Double operator/(Double a, Double b) { return a.v / b.v; }
  friend CERMET_DEVICE Double operator-(Double a) { return -a.v; }
  friend CERMET_DEVICE bool operator<(Double a, Double b) { return a.v < b.v; }
  friend CERMET_DEVICE bool operator<=(Double a, Double b) { return a.v <= b.v; }
  friend CERMET_DEVICE bool operator>(Double a, Double b) { return a.v > b.v; }
  friend CERMET_DEVICE bool operator>=(Double a, Double b) { return a.v >= b.v; }
  friend CERMET_DEVICE bool operator==(Double a, Double b) { return a.v == b.v; }
  friend CERMET_DEVICE bool operator!=(Double a, Double b) { return a.v != b.v; }
};

CERMET_DEVICE Double select(bool condition, Double yes, Double no) { return condition ? yes : no; }
CERMET_DEVICE Double abs(Double x) { return ::fabs(x.v); }
/// The larger; NaN where either is.
CERMET_DEVICE Double maximum(Double a, Double b) { return a.v != a.v || b.v != b.v ? a.v + b.v : ::fmax(a.v, b.v); }
/// The smaller; NaN where either is.
CERMET_DEVICE Double minimum(Double a, Double b) { return a.v != a.v || b.v != b.v ? a.v + b.v : ::fmin(a.v, b.v); }
CERMET_DEVICE Double nearest(Double x) { return ::rint(x.v); }
CERMET_DEVICE Double sqrt(Double x) { return ::sqrt(x.v); }
CERMET_DEVICE Double floor(Double x) { return ::floor(x.v); }
CERMET_DEVICE Double ceil(Double x) { return ::ceil(x.v); }
CERMET_DEVICE Double exp(Double x) { return ::exp(x.v); }
CERMET_DEVICE Double expm1(Double x) { return ::expm1(x.v); }
CERMET_DEVICE Double log(Double x) { return ::log(x.v); }
CERMET_DEVICE Double log1p(Double x) { return ::log1p(x.v); }
CERMET_DEVICE Double sin(Double x) { return ::sin(x.v); }
CERMET_DEVICE Double cos(Double x) { return ::cos(x.v); }
CERMET_DEVICE Double tan(Double x) { return ::tan(x.v); }
CERMET_DEVICE Double asin(Double x) { return ::asin(x.v); }
CERMET_DEVICE Double acos(Double x) { return ::acos(x.v); }
CERMET_DEVICE Double atan(Double x) { return ::atan(x.v); }
CERMET_DEVICE Double sinh(Double x) { return ::sinh(x.v); }
CERMET_DEVICE Double cosh(Double x) { return ::cosh(x.v); }
CERMET_DEVICE Double tanh(Double x) { return ::tanh(x.v); }
CERMET_DEVICE Double asinh(Double x) { return ::asinh(x.v); }
CERMET_DEVICE Double acosh(Double x) { return ::acosh(x.v); }
CERMET_DEVICE Double atanh(Double x) { return ::atanh(x.v); }
CERMET_DEVICE Double erf(Double x) { return ::erf(x.v); }
CERMET_DEVICE Double pow(Double a, Double b) { return ::pow(a.v, b.v); }
/// Exact; the sign of a.
CERMET_DEVICE Double trunc_mod(Double a, Double b) { return ::fmod(a.v, b.v); }
/// As numpy.mod: the sign of b.
CERMET_DEVICE Double floor_mod(Double a, Double b) {
  const double remainder = ::fmod(a.v, b.v);
  if (remainder == 0) return ::copysign(remainder, b.v);
  return (remainder < 0) != (b.v < 0) ? remainder + b.v : remainder;
}
/// e^-|x|
CERMET_DEVICE Double exp_of_negative_abs(Double x) { return ::exp(-::fabs(x.v)); }
/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
CERMET_DEVICE Double sigmoid(Double x) {
  const double e = ::exp(-::fabs(x.v));
  return (x.v < 0 ? e : 1.0) / (1.0 + e);
}
/// Probability that a standard normal variable is at most x.
CERMET_DEVICE Double normal_cdf(Double x) { return 0.5 * ::erfc(x.v * -0.70710678118654752440); }
/// sqrt(2 / pi) (x + 0.044715 x^3)
CERMET_DEVICE Double gelu_tanh_argument(Double x) {
  return x.v * (0.79788456080286535588 + 0.79788456080286535588 * 0.044715 * (x.v * x.v));
}

}  // namespace cermet
