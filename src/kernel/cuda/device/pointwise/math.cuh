// The functions that rows of pointwise.inc and activation.inc may use, for float32. Those for integers:
// op/wrapping.hpp; for double: double.cuh.
#pragma once

#include "kernel/cuda/device/types.cuh"
#include "op/wrapping.hpp"

namespace cermet {

/// A float32 that takes its literals from double without computing in it, so that expressions read as they do on the
/// host.
struct Real {
  float v;

  CERMET_DEVICE constexpr Real(float x) : v(x) {}
  CERMET_DEVICE constexpr Real(double x) : v(static_cast<float>(x)) {}
  CERMET_DEVICE constexpr Real(int x) : v(static_cast<float>(x)) {}
  friend CERMET_DEVICE Real operator+(Real a, Real b) { return a.v + b.v; }
  friend CERMET_DEVICE Real operator-(Real a, Real b) { return a.v - b.v; }
  friend CERMET_DEVICE Real operator*(Real a, Real b) { return a.v * b.v; }
  friend CERMET_DEVICE Real operator/(Real a, Real b) { return a.v / b.v; }
  friend CERMET_DEVICE Real operator-(Real a) { return -a.v; }
  friend CERMET_DEVICE bool operator<(Real a, Real b) { return a.v < b.v; }
  friend CERMET_DEVICE bool operator<=(Real a, Real b) { return a.v <= b.v; }
  friend CERMET_DEVICE bool operator>(Real a, Real b) { return a.v > b.v; }
  friend CERMET_DEVICE bool operator>=(Real a, Real b) { return a.v >= b.v; }
  friend CERMET_DEVICE bool operator==(Real a, Real b) { return a.v == b.v; }
  friend CERMET_DEVICE bool operator!=(Real a, Real b) { return a.v != b.v; }
};

CERMET_DEVICE Real select(bool condition, Real yes, Real no) { return condition ? yes : no; }
CERMET_DEVICE Real abs(Real x) { return fabsf(x.v); }
/// The larger; NaN where either is.
CERMET_DEVICE Real maximum(Real a, Real b) { return a.v != a.v || b.v != b.v ? a.v + b.v : fmaxf(a.v, b.v); }
/// The smaller; NaN where either is.
CERMET_DEVICE Real minimum(Real a, Real b) { return a.v != a.v || b.v != b.v ? a.v + b.v : fminf(a.v, b.v); }
CERMET_DEVICE Real sqrt(Real x) { return sqrtf(x.v); }
CERMET_DEVICE Real floor(Real x) { return floorf(x.v); }
CERMET_DEVICE Real ceil(Real x) { return ceilf(x.v); }
CERMET_DEVICE Real nearest(Real x) { return rintf(x.v); }
CERMET_DEVICE Real exp(Real x) { return expf(x.v); }
CERMET_DEVICE Real expm1(Real x) { return expm1f(x.v); }
CERMET_DEVICE Real log(Real x) { return logf(x.v); }
CERMET_DEVICE Real log1p(Real x) { return log1pf(x.v); }
CERMET_DEVICE Real sin(Real x) { return sinf(x.v); }
CERMET_DEVICE Real cos(Real x) { return cosf(x.v); }
CERMET_DEVICE Real tan(Real x) { return tanf(x.v); }
CERMET_DEVICE Real asin(Real x) { return asinf(x.v); }
CERMET_DEVICE Real acos(Real x) { return acosf(x.v); }
CERMET_DEVICE Real atan(Real x) { return atanf(x.v); }
CERMET_DEVICE Real sinh(Real x) { return sinhf(x.v); }
CERMET_DEVICE Real cosh(Real x) { return coshf(x.v); }
CERMET_DEVICE Real tanh(Real x) { return tanhf(x.v); }
CERMET_DEVICE Real asinh(Real x) { return asinhf(x.v); }
CERMET_DEVICE Real acosh(Real x) { return acoshf(x.v); }
CERMET_DEVICE Real atanh(Real x) { return atanhf(x.v); }

/// The hardware's reciprocal, off by a unit in the last place, which the operators' bounds allow; 0 above 2^126.
CERMET_DEVICE float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// The smaller; NaN where x is.
CERMET_DEVICE float at_most(float x, float limit) {
#if CERMET_ARCH >= 800
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(limit));
  return y;
#else
  return x > limit ? limit : x;
#endif
}
/// A quotient of polynomials in x^2 (those of Eigen's generic_fast_erf_float), off by 5.5 * 2^-24 of the value before
/// the reciprocal rounds: a third fewer instructions than erff, which selects between two polynomials. 1 from 4 on.
CERMET_DEVICE Real erf(Real x) {
  const float a = at_most(fabsf(x.v), 4.0f), t = a * a;
  float above = 0.00022905065861350646f, below = -1.1791602954361697e-7f;
  above = fmaf(above, t, 0.0034082910107109506f);
  above = fmaf(above, t, 0.050955695062380861f);
  above = fmaf(above, t, 0.18520832239976145f);
  above = fmaf(above, t, 1.128379143519084f);
  below = fmaf(below, t, 0.000023547966471313185f);
  below = fmaf(below, t, 0.0010179625278914885f);
  below = fmaf(below, t, 0.014070470171167667f);
  below = fmaf(below, t, 0.11098505178285362f);
  below = fmaf(below, t, 0.49746925110067538f);
  below = fmaf(below, t, 1.0f);
  return copysignf(at_most(above * a * reciprocal(below), 1.0f), x.v);
}
/// In double, because the float32 function is off by up to 4 units in the last place.
CERMET_DEVICE Real pow(Real a, Real b) {
  return static_cast<float>(::pow(static_cast<double>(a.v), static_cast<double>(b.v)));
}
/// Exact; the sign of a.
CERMET_DEVICE Real trunc_mod(Real a, Real b) { return fmodf(a.v, b.v); }
/// As numpy.mod: the sign of b.
CERMET_DEVICE Real floor_mod(Real a, Real b) {
  const float remainder = fmodf(a.v, b.v);
  if (remainder == 0) return copysignf(remainder, b.v);
  return (remainder < 0) != (b.v < 0) ? remainder + b.v : remainder;
}

/// e^-|x|
CERMET_DEVICE Real exp_of_negative_abs(Real x) { return expf(-fabsf(x.v)); }

/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
CERMET_DEVICE Real sigmoid(Real x) {
  const float e = expf(-fabsf(x.v));
  return (x.v < 0 ? e : 1.0f) * reciprocal(1.0f + e);
}
/// Probability that a standard normal variable is at most x.
///
/// Beyond |x| it is e^(-x^2/2) by a polynomial in 1 / (1 + 0.35 |x|), fitted by least squares of relative errors: 3.3 *
/// 2^-24 (1 + x^2 / 2) of the value with float32 arithmetic before e^.. is rounded; half the instructions of erfcf.
CERMET_DEVICE Real normal_cdf(Real x) {
  const float z = at_most(fabsf(x.v), 40.0f), below = fmaf(0.35f, z, 1.0f), first = reciprocal(below),
              t = fmaf(first, fmaf(-below, first, 1.0f), first);
  float tail = -0.029161959886550903f;
  tail = fmaf(tail, t, 0.14404341578483582f);
  tail = fmaf(tail, t, -0.25584888458251953f);
  tail = fmaf(tail, t, 0.15931186079978943f);
  tail = fmaf(tail, t, -0.023193245753645897f);
  tail = fmaf(tail, t, 0.10553841292858124f);
  tail = fmaf(tail, t, 0.11982640624046326f);
  tail = fmaf(tail, t, 0.13986259698867798f);
  tail = fmaf(tail, t, 0.13962137699127197f);
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(z * z * -0.72134752044448170f));
  const float beyond = tail * t * power;
  return x.v < 0 ? beyond : 1.0f - beyond;
}
/// sqrt(2 / pi) (x + 0.044715 x^3)
CERMET_DEVICE Real gelu_tanh_argument(Real x) {
  return x.v * (0.79788456080286536f + 0.035677408136300125f * (x.v * x.v));
}

}  // namespace cermet
