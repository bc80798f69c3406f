// The functions that rows of pointwise.inc may use, for double.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

/// A double that functions of namespace cermet are looked up for.
struct Double {
  double v;

  __device__ __forceinline__ constexpr Double(double x) : v(x) {}
  __device__ __forceinline__ constexpr Double(int x) : v(x) {}
  friend __device__ __forceinline__ Double operator+(Double a, Double b) { return a.v + b.v; }
  friend __device__ __forceinline__ Double operator-(Double a, Double b) { return a.v - b.v; }
  friend __device__ __forceinline__ Double operator*(Double a, Double b) { return a.v * b.v; }
  friend __device__ __forceinline__ Double operator/(Double a, Double b) { return a.v / b.v; }
  friend __device__ __forceinline__ Double operator-(Double a) { return -a.v; }
  friend __device__ __forceinline__ bool operator<(Double a, Double b) { return a.v < b.v; }
  friend __device__ __forceinline__ bool operator<=(Double a, Double b) { return a.v <= b.v; }
  friend __device__ __forceinline__ bool operator>(Double a, Double b) { return a.v > b.v; }
  friend __device__ __forceinline__ bool operator>=(Double a, Double b) { return a.v >= b.v; }
  friend __device__ __forceinline__ bool operator==(Double a, Double b) { return a.v == b.v; }
  friend __device__ __forceinline__ bool operator!=(Double a, Double b) { return a.v != b.v; }
};

__device__ __forceinline__ Double select(bool condition, Double yes, Double no) { return condition ? yes : no; }
__device__ __forceinline__ Double abs(Double x) { return ::fabs(x.v); }
/// The larger; NaN where either is.
__device__ __forceinline__ Double maximum(Double a, Double b) { return a.v != a.v || b.v != b.v ? a.v + b.v : ::fmax(a.v, b.v); }
/// The smaller; NaN where either is.
__device__ __forceinline__ Double minimum(Double a, Double b) { return a.v != a.v || b.v != b.v ? a.v + b.v : ::fmin(a.v, b.v); }
__device__ __forceinline__ Double nearest(Double x) { return ::rint(x.v); }
__device__ __forceinline__ Double sqrt(Double x) { return ::sqrt(x.v); }
__device__ __forceinline__ Double floor(Double x) { return ::floor(x.v); }
__device__ __forceinline__ Double ceil(Double x) { return ::ceil(x.v); }
__device__ __forceinline__ Double exp(Double x) { return ::exp(x.v); }
__device__ __forceinline__ Double expm1(Double x) { return ::expm1(x.v); }
__device__ __forceinline__ Double log(Double x) { return ::log(x.v); }
__device__ __forceinline__ Double log1p(Double x) { return ::log1p(x.v); }
__device__ __forceinline__ Double sin(Double x) { return ::sin(x.v); }
__device__ __forceinline__ Double cos(Double x) { return ::cos(x.v); }
__device__ __forceinline__ Double tan(Double x) { return ::tan(x.v); }
__device__ __forceinline__ Double asin(Double x) { return ::asin(x.v); }
__device__ __forceinline__ Double acos(Double x) { return ::acos(x.v); }
__device__ __forceinline__ Double atan(Double x) { return ::atan(x.v); }
__device__ __forceinline__ Double sinh(Double x) { return ::sinh(x.v); }
__device__ __forceinline__ Double cosh(Double x) { return ::cosh(x.v); }
__device__ __forceinline__ Double tanh(Double x) { return ::tanh(x.v); }
__device__ __forceinline__ Double asinh(Double x) { return ::asinh(x.v); }
__device__ __forceinline__ Double acosh(Double x) { return ::acosh(x.v); }
__device__ __forceinline__ Double atanh(Double x) { return ::atanh(x.v); }
__device__ __forceinline__ Double erf(Double x) { return ::erf(x.v); }
__device__ __forceinline__ Double pow(Double a, Double b) { return ::pow(a.v, b.v); }
/// Exact; the sign of a.
__device__ __forceinline__ Double trunc_mod(Double a, Double b) { return ::fmod(a.v, b.v); }
/// As numpy.mod: the sign of b.
__device__ __forceinline__ Double floor_mod(Double a, Double b) {
  const double rest = ::fmod(a.v, b.v);
  if (rest == 0) return ::copysign(rest, b.v);
  return (rest < 0) != (b.v < 0) ? rest + b.v : rest;
}
/// e^-|x|
__device__ __forceinline__ Double exp_of_negative_abs(Double x) { return ::exp(-::fabs(x.v)); }
/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
__device__ __forceinline__ Double sigmoid(Double x) {
  const double e = ::exp(-::fabs(x.v));
  return (x.v < 0 ? e : 1.0) / (1.0 + e);
}
/// Probability that a standard normal variable is at most x.
__device__ __forceinline__ Double normal_cdf(Double x) { return 0.5 * ::erfc(x.v * -0.70710678118654752440); }
/// sqrt(2 / pi) (x + 0.044715 x^3)
__device__ __forceinline__ Double gelu_tanh_argument(Double x) { return x.v * (0.79788456080286535588 + 0.79788456080286535588 * 0.044715 * (x.v * x.v)); }

}  // namespace cermet
