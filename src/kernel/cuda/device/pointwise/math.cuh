// The functions that rows of pointwise.inc and activation.inc may use: for float32 and for wrapping 64-bit integers.
#pragma once

#include "kernel/cuda/device/types.cuh"

namespace cermet {

/// A float32 that takes its literals from double without computing in it, so that expressions read as they do on the host.
struct Real {
  float v;

  __device__ __forceinline__ constexpr Real(float x) : v(x) {}
  __device__ __forceinline__ constexpr Real(double x) : v(static_cast<float>(x)) {}
  __device__ __forceinline__ constexpr Real(int x) : v(static_cast<float>(x)) {}
  friend __device__ __forceinline__ Real operator+(Real a, Real b) { return a.v + b.v; }
  friend __device__ __forceinline__ Real operator-(Real a, Real b) { return a.v - b.v; }
  friend __device__ __forceinline__ Real operator*(Real a, Real b) { return a.v * b.v; }
  friend __device__ __forceinline__ Real operator/(Real a, Real b) { return a.v / b.v; }
  friend __device__ __forceinline__ Real operator-(Real a) { return -a.v; }
  friend __device__ __forceinline__ bool operator<(Real a, Real b) { return a.v < b.v; }
  friend __device__ __forceinline__ bool operator<=(Real a, Real b) { return a.v <= b.v; }
  friend __device__ __forceinline__ bool operator>(Real a, Real b) { return a.v > b.v; }
  friend __device__ __forceinline__ bool operator>=(Real a, Real b) { return a.v >= b.v; }
  friend __device__ __forceinline__ bool operator==(Real a, Real b) { return a.v == b.v; }
  friend __device__ __forceinline__ bool operator!=(Real a, Real b) { return a.v != b.v; }
};

__device__ __forceinline__ Real select(bool condition, Real yes, Real no) { return condition ? yes : no; }
__device__ __forceinline__ Real abs(Real x) { return fabsf(x.v); }
/// The larger; NaN where either is.
__device__ __forceinline__ Real maximum(Real a, Real b) { return a.v != a.v || b.v != b.v ? a.v + b.v : fmaxf(a.v, b.v); }
/// The smaller; NaN where either is.
__device__ __forceinline__ Real minimum(Real a, Real b) { return a.v != a.v || b.v != b.v ? a.v + b.v : fminf(a.v, b.v); }
__device__ __forceinline__ Real sqrt(Real x) { return sqrtf(x.v); }
__device__ __forceinline__ Real floor(Real x) { return floorf(x.v); }
__device__ __forceinline__ Real ceil(Real x) { return ceilf(x.v); }
__device__ __forceinline__ Real nearest(Real x) { return rintf(x.v); }
__device__ __forceinline__ Real exp(Real x) { return expf(x.v); }
__device__ __forceinline__ Real expm1(Real x) { return expm1f(x.v); }
__device__ __forceinline__ Real log(Real x) { return logf(x.v); }
__device__ __forceinline__ Real log1p(Real x) { return log1pf(x.v); }
__device__ __forceinline__ Real sin(Real x) { return sinf(x.v); }
__device__ __forceinline__ Real cos(Real x) { return cosf(x.v); }
__device__ __forceinline__ Real tanh(Real x) { return tanhf(x.v); }
__device__ __forceinline__ Real erf(Real x) { return erff(x.v); }
/// In double, because the float32 function is off by up to 4 units in the last place.
__device__ __forceinline__ Real pow(Real a, Real b) { return static_cast<float>(::pow(static_cast<double>(a.v), static_cast<double>(b.v))); }

/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
__device__ __forceinline__ Real sigmoid(Real x) {
  const float e = expf(-fabsf(x.v));
  return (x.v < 0 ? e : 1.0f) / (1.0f + e);
}
/// Probability that a standard normal variable is at most x.
__device__ __forceinline__ Real normal_cdf(Real x) { return 0.5f * erfcf(x.v * -0.70710678118654752f); }
/// sqrt(2 / pi) (x + 0.044715 x^3)
__device__ __forceinline__ Real gelu_tanh_argument(Real x) { return x.v * (0.79788456080286536f + 0.035677408136300125f * (x.v * x.v)); }

/// A 64-bit integer whose arithmetic wraps. Booleans are 0 and 1.
struct Integer {
  int64_t value;

  __device__ __forceinline__ constexpr Integer(int64_t x) : value(x) {}
  __device__ __forceinline__ constexpr Integer(int x) : value(x) {}
  static __device__ __forceinline__ Integer wrap(uint64_t bits) { return static_cast<int64_t>(bits); }
  friend __device__ __forceinline__ Integer operator+(Integer a, Integer b) { return wrap(static_cast<uint64_t>(a.value) + static_cast<uint64_t>(b.value)); }
  friend __device__ __forceinline__ Integer operator-(Integer a, Integer b) { return wrap(static_cast<uint64_t>(a.value) - static_cast<uint64_t>(b.value)); }
  friend __device__ __forceinline__ Integer operator*(Integer a, Integer b) { return wrap(static_cast<uint64_t>(a.value) * static_cast<uint64_t>(b.value)); }
  friend __device__ __forceinline__ Integer operator-(Integer a) { return Integer(0) - a; }
  friend __device__ __forceinline__ bool operator<(Integer a, Integer b) { return a.value < b.value; }
  friend __device__ __forceinline__ bool operator<=(Integer a, Integer b) { return a.value <= b.value; }
  friend __device__ __forceinline__ bool operator>(Integer a, Integer b) { return a.value > b.value; }
  friend __device__ __forceinline__ bool operator>=(Integer a, Integer b) { return a.value >= b.value; }
  friend __device__ __forceinline__ bool operator==(Integer a, Integer b) { return a.value == b.value; }
  friend __device__ __forceinline__ bool operator!=(Integer a, Integer b) { return a.value != b.value; }
};

__device__ __forceinline__ Integer select(bool condition, Integer yes, Integer no) { return condition ? yes : no; }
__device__ __forceinline__ Integer abs(Integer x) { return x.value < 0 ? -x : x; }
__device__ __forceinline__ Integer maximum(Integer a, Integer b) { return a.value > b.value ? a : b; }
__device__ __forceinline__ Integer minimum(Integer a, Integer b) { return a.value < b.value ? a : b; }

}  // namespace cermet
