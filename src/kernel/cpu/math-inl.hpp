// Elementwise mathematics over vectors: `Real` is a vector of float32 that reads like a number, so that one expression serves references (double), kernels,
// and device code. NaN propagates through every function; results are within a few units in the last place. Include after <hwy/foreach_target.h>.
#if defined(CERMET_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_MATH_INL
#undef CERMET_MATH_INL
#else
#define CERMET_MATH_INL
#endif

#include <hwy/contrib/math/math-inl.h>

#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

struct Real {
  Floats v;

  HWY_INLINE Real(Floats vector) : v(vector) {}                                           // NOLINT(google-explicit-constructor): reads like a number
  HWY_INLINE Real(double number) : v(hn::Set(FloatTag(), static_cast<float>(number))) {}  // NOLINT(google-explicit-constructor)
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
HWY_INLINE Real maximum(Real a, Real b) { return select(a != a, a, select(b != b, b, hn::Max(a.v, b.v))); }
/// The smaller; NaN where either is.
HWY_INLINE Real minimum(Real a, Real b) { return select(a != a, a, select(b != b, b, hn::Min(a.v, b.v))); }

/// e^x; 0 below about -104, infinity above 88.72.
HWY_INLINE Real exp(Real x) {
  const FloatTag d;
  const auto y = hn::Exp(d, hn::Min(hn::Max(x.v, hn::Set(d, -105.0f)), hn::Set(d, 104.0f)));
  return select(x == x, y, x);
}

/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
HWY_INLINE Real sigmoid(Real x) {
  const Real e = exp(-abs(x));
  return select(x >= 0, Real(1), e) / (e + 1);
}

HWY_INLINE Real silu(Real x) { return x * sigmoid(x); }

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
