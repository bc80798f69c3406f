// Elementwise mathematics over vectors: `Real` is a vector of float32 that reads like a number, so that one expression
// serves references (double), kernels, and device code. NaN propagates through every function; results are within a few
// units in the last place. Include after <hwy/foreach_target.h>.
#if defined(CERMET_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_MATH_INL
#undef CERMET_MATH_INL
#else
#define CERMET_MATH_INL
#endif

#include <hwy/contrib/math/math-inl.h>

#include <cmath>
#include <limits>

#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

struct Real {
  Floats v;

  HWY_INLINE Real(Floats vector) : v(vector) {}  // NOLINT(google-explicit-constructor): reads like a number
  HWY_INLINE Real(double number)
      : v(hn::Set(FloatTag(), static_cast<float>(number))) {}  // NOLINT(google-explicit-constructor)
  friend HWY_INLINE Real operator+(Real a, Real b) { return hn::Add(a.v, b.v); }
  friend HWY_INLINE Real operator-(Real a, Real b) { return hn::Sub(a.v, b.v); }
  friend HWY_INLINE Real operator*(Real a, Real b) { return hn::Mul(a.v, b.v); }
  friend HWY_INLINE Real operator/(Real a, Real b) { return hn::Div(a.v, b.v); }
  friend HWY_INLINE Real operator-(Real a) { return hn::Neg(a.v); }
};

/// The outcome of a comparison, per lane; comparisons with NaN are false, but for !=.
struct Condition {
  hn::Mask<FloatTag> mask;
};
HWY_INLINE Condition operator<(Real a, Real b) { return {hn::Lt(a.v, b.v)}; }
HWY_INLINE Condition operator<=(Real a, Real b) { return {hn::Le(a.v, b.v)}; }
HWY_INLINE Condition operator>(Real a, Real b) { return {hn::Gt(a.v, b.v)}; }
HWY_INLINE Condition operator>=(Real a, Real b) { return {hn::Ge(a.v, b.v)}; }
HWY_INLINE Condition operator==(Real a, Real b) { return {hn::Eq(a.v, b.v)}; }
HWY_INLINE Condition operator!=(Real a, Real b) { return {hn::Not(hn::Eq(a.v, b.v))}; }
HWY_INLINE Real select(Condition condition, Real yes, Real no) { return hn::IfThenElse(condition.mask, yes.v, no.v); }

HWY_INLINE Real abs(Real x) { return hn::Abs(x.v); }
/// The larger; NaN where either is.
HWY_INLINE Real maximum(Real a, Real b) { return select(a == a, at_least(b.v, a.v), a); }
/// The smaller; NaN where either is.
HWY_INLINE Real minimum(Real a, Real b) { return select(a == a, at_most(b.v, a.v), a); }

HWY_INLINE Real sqrt(Real x) { return hn::Sqrt(x.v); }
// A zero has the sign of the operand, as IEEE 754 says; the emulations of instruction sets without these instructions
// lose it.
HWY_INLINE Real floor(Real x) { return hn::CopySign(hn::Floor(x.v), x.v); }
HWY_INLINE Real ceil(Real x) { return hn::CopySign(hn::Ceil(x.v), x.v); }
HWY_INLINE Real nearest(Real x) { return hn::CopySign(hn::Round(x.v), x.v); }  ///< half to even
HWY_INLINE Real with_sign_of(Real magnitude, Real sign) { return hn::CopySign(magnitude.v, sign.v); }

/// c[0] + c[1] x + ... + c[n - 1] x^(n - 1)
template <std::size_t n>
HWY_INLINE Real polynomial(Real x, const float (&c)[n]) {
  auto sum = hn::Set(FloatTag(), c[n - 1]);
  for (std::size_t i = n - 1; i-- > 0;) sum = hn::MulAdd(sum, x.v, hn::Set(FloatTag(), c[i]));
  return sum;
}

/// Calls a scalar function for each lane: for rare cases and functions without a short vector form.
template <class Function>
HWY_INLINE Real per_lane(Real a, Real b, Function function) {
  HWY_ALIGN float x[hn::MaxLanes(FloatTag())], y[hn::MaxLanes(FloatTag())];
  hn::Store(a.v, FloatTag(), x);
  hn::Store(b.v, FloatTag(), y);
  for (std::size_t i = 0; i < lanes(); ++i) x[i] = function(x[i], y[i]);
  return hn::Load(FloatTag(), x);
}

#if HWY_TARGET > HWY_AVX3 || !HWY_ARCH_X86
/// v * 2^n for whole n in [-151, 151], rounded once: in two steps, because 2^n may be no normal number.
HWY_INLINE Floats scale_by_power(Floats v, Floats n) {
  const hn::RebindToSigned<FloatTag> integer;
  const auto exponent = hn::ConvertTo(integer, n), half = hn::ShiftRight<1>(exponent);
  const auto power = [&](auto e) HWY_ATTR {
    return hn::BitCast(FloatTag(), hn::ShiftLeft<23>(hn::Add(e, hn::Set(integer, 127))));
  };
  return hn::Mul(hn::Mul(v, power(half)), power(hn::Sub(exponent, half)));
}
#endif

/// e^x for x <= 104, and NaN; 0 for x below `least`, without the subnormal numbers on the way that cost a processor a
/// hundred cycles each. 2^n e^r with |r| <= log(2) / 2 and a minimax polynomial (own fit, relative error 3.1e-9).
HWY_INLINE Real exp_above(Real x, float least) {
  static constexpr float c[] = {1.0f, 1.0f, 0.499999934f, 0.166665204f, 0.0416683908f, 0.00836874511f, 0.001381454f};
  const FloatTag d;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  const auto kept = _mm512_cmp_ps_mask(x.v.raw, _mm512_set1_ps(least), _CMP_NLT_UQ);  // NaN, too
#else
  const auto kept = hn::Not(hn::Lt(x.v, hn::Set(d, least)));
  x = hn::IfThenElseZero(kept, x.v);  // e^least would be subnormal itself
#endif
  const auto anchor = hn::Set(d, 0x1.8p23f);  // numbers around it are whole: rounds with one operation less
  const auto n = hn::Sub(hn::MulAdd(x.v, hn::Set(d, 1.44269504f), anchor), anchor);
  // n log(2), in a part of which n times is exact and a low part.
  const auto r =
      hn::NegMulAdd(n, hn::Set(d, 1.428606765330187e-6f), hn::NegMulAdd(n, hn::Set(d, 0.693145751953125f), x.v));
  const Floats fraction = polynomial(Real(r), c).v;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  return Real(Floats{_mm512_maskz_scalef_ps(kept, fraction.raw, n.raw)});
#else
  return hn::IfThenElseZero(kept, scale_by_power(fraction, n));
#endif
}

/// e^x; 0 below -104, infinity above 88.72.
HWY_INLINE Real exp(Real x) { return exp_above(at_most(x.v, hn::Set(FloatTag(), 104.0f)), -104); }
/// The same of x <= 0, and 0 where it is no normal number: for terms of sums, and factors.
HWY_INLINE Real exp_of_negative(Real x) { return exp_above(x, -87.33f); }

/// e^x - 1 for x <= 88; -1 below -30, as float32 rounds it.
HWY_INLINE Real expm1(Real x) {
  const FloatTag d;
  return select(x == x, hn::Expm1(d, hn::Min(hn::Max(x.v, hn::Set(d, -30.0f)), hn::Set(d, 88.0f))), x);
}

HWY_INLINE Real log(Real x) {
  const Real infinity = std::numeric_limits<float>::infinity();
  const Real edge =
      select(x == 0, -infinity, select(x == infinity, infinity, Real(std::numeric_limits<float>::quiet_NaN())));
  return select(x > 0, select(x < infinity, hn::Log(FloatTag(), x.v), edge), edge);
}

/// log(1 + x) for 0 <= x <= 1, and NaN.
HWY_INLINE Real log1p(Real x) { return select(x == x, hn::Log1p(FloatTag(), x.v), x); }

/// 1 from 10 on, as float32 rounds it; Highway's makes subnormal numbers on the way there.
HWY_INLINE Real tanh(Real x) {
  return select(x == x, hn::Tanh(FloatTag(), clamp(x.v, hn::Set(FloatTag(), -10.0f), hn::Set(FloatTag(), 10.0f))), x);
}

/// Beyond this the three-part reduction by pi loses bits, and the C library is used.
inline constexpr float largest_reduced_angle = 8192;

HWY_INLINE Condition is_reduced(Real x) { return abs(x) <= largest_reduced_angle; }

HWY_INLINE Real sin(Real x) {
  const Condition near = is_reduced(x);
  const Real y = hn::Sin(FloatTag(), x.v);
  if (HWY_LIKELY(hn::AllTrue(FloatTag(), near.mask))) return y;
  return select(near, y, per_lane(x, x, [](float v, float) {
                  return std::sin(v);
                }));  // an element's bits do not depend on those beside it
}
HWY_INLINE Real cos(Real x) {
  const Condition near = is_reduced(x);
  const Real y = hn::Cos(FloatTag(), x.v);
  if (HWY_LIKELY(hn::AllTrue(FloatTag(), near.mask))) return y;
  return select(near, y, per_lane(x, x, [](float v, float) {
                  return std::cos(v);
                }));  // an element's bits do not depend on those beside it
}
HWY_INLINE Real pow(Real a, Real b) {
  return per_lane(a, b, [](float x, float y) { return std::pow(x, y); });
}

/// Exact; the sign of a.
HWY_INLINE Real trunc_mod(Real a, Real b) {
  return per_lane(a, b, [](float x, float y) { return std::fmod(x, y); });
}
/// As numpy.mod: the sign of b.
HWY_INLINE Real floor_mod(Real a, Real b) {
  const Real remainder = trunc_mod(a, b);
  const Real other =
      select(remainder < 0, select(b < 0, remainder, remainder + b), select(b < 0, remainder + b, remainder));
  return select(remainder == 0, with_sign_of(remainder, b), other);
}

/// sin(x) / cos(x) is not accurate enough near the poles.
HWY_INLINE Real tan(Real x) {
  return per_lane(x, x, [](float v, float) { return std::tan(v); });
}

/// What a Highway function gives where `inside`, NaN elsewhere.
HWY_INLINE Real where_defined(Condition inside, Real value) {
  return select(inside, value, Real(std::numeric_limits<float>::quiet_NaN()));
}
HWY_INLINE Real asin(Real x) { return where_defined(abs(x) <= 1, hn::Asin(FloatTag(), x.v)); }
HWY_INLINE Real acos(Real x) { return where_defined(abs(x) <= 1, hn::Acos(FloatTag(), x.v)); }
HWY_INLINE Real atan(Real x) { return where_defined(x == x, hn::Atan(FloatTag(), x.v)); }

/// From e^(|x| / 2), which does not overflow before the result.
HWY_INLINE Real cosh(Real x) {
  const Real half = exp(abs(x) * 0.5), large = half * 0.5 * half, e = exp(minimum(abs(x), Real(80)));
  return select(abs(x) < 80, (e + 1 / e) * 0.5, large);
}
HWY_INLINE Real sinh(Real x) {
  const Real half = exp(abs(x) * 0.5), large = half * 0.5 * half, t = expm1(minimum(abs(x), Real(80)));
  return with_sign_of(select(abs(x) < 80, (t + t / (t + 1)) * 0.5, large), x);
}

/// Highway's squares the operand: beyond the square root of the largest float it is log(2 |x|).
inline constexpr float largest_squared = 1e18f;

HWY_INLINE Real asinh(Real x) {
  const Real large = log(abs(x)) + 0.69314718055994531,
             small = hn::Asinh(FloatTag(), minimum(abs(x), Real(largest_squared)).v);
  return with_sign_of(select(abs(x) < largest_squared, small, large), x);
}
HWY_INLINE Real acosh(Real x) {
  const Real large = log(x) + 0.69314718055994531, small = hn::Acosh(FloatTag(), minimum(x, Real(largest_squared)).v);
  return where_defined(x >= 1, select(x < largest_squared, small, large));
}
HWY_INLINE Real atanh(Real x) {
  const Real edge = with_sign_of(Real(std::numeric_limits<float>::infinity()), x);
  return where_defined(abs(x) <= 1, select(abs(x) == 1, edge, hn::Atanh(FloatTag(), x.v)));
}

/// e^-|x|
HWY_INLINE Real exp_of_negative_abs(Real x) { return exp_of_negative(Real(hn::Or(x.v, hn::SignBit(FloatTag())))); }

/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
HWY_INLINE Real sigmoid(Real x) {
  const Real e = exp_of_negative_abs(x);
  return select(x >= 0, Real(1), e) / (e + 1);
}

/// x sigmoid(x), divided once.
HWY_INLINE Real silu(Real x) {
  const Real e = exp_of_negative_abs(x);
  return select(x < 0, x * e, x) / (e + 1);
}

/// e^(-t^2 / 2) r(t), the probability that a standard normal variable is above t >= 0; minimax r of degrees 4 and 5
/// (own fit, relative error 5.9e-9 on [0, 14.5]); 0 from t = 12.946 on, where it is about to be no normal number.
/// `square`: t^2, which a caller may have with less error.
HWY_INLINE Real normal_tail(Real t, Real square) {
  static constexpr float over[] = {0.500000003f, 0.438294024f, 0.183234404f, 0.0406329658f, 0.00411626687f};
  static constexpr float under[] = {1.0f, 1.67447303f, 1.2025002f, 0.469468683f, 0.101858188f, 0.0103178312f};
  const Real near = at_most(t.v, hn::Set(FloatTag(), 16.0f));
  return exp_above(-0.5 * square, -83.8f) * polynomial(near, over) / polynomial(near, under);
}

/// Error function: x P(x^2) near zero (own fit, relative error 1.2e-9 on [0, 1]), 1 - erfc beyond.
HWY_INLINE Real erf(Real x) {
  static constexpr float c[] = {1.1283791f,    -0.37612626f,    0.11283585f,   -0.026853813f,
                                0.0051883277f, -0.00080101937f, 7.8538607e-05f};
  const Real t = abs(x), square = t * t;
  const Real far = with_sign_of(1 - 2 * normal_tail(t * 1.4142135623730951, 2 * square), x);
  return select(t < 1, x * polynomial(square, c), select(x == x, far, x));
}

/// Probability that a standard normal variable is at most x.
HWY_INLINE Real normal_cdf(Real x) {
  const Real tail = normal_tail(abs(x), x * x);
  return select(x < 0, tail, 1 - tail);
}

/// sqrt(2 / pi) (x + 0.044715 x^3)
HWY_INLINE Real gelu_tanh_argument(Real x) { return x * (0.79788456080286536 + 0.035677408136300125 * (x * x)); }

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
