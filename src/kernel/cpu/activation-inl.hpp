// Activation functions on vectors, compiled once per instruction set: include after <hwy/foreach_target.h>.
#if defined(CERMET_ACTIVATION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_ACTIVATION_INL
#undef CERMET_ACTIVATION_INL
#else
#define CERMET_ACTIVATION_INL
#endif

#include "kernel/cpu/vec-inl.hpp"
#include "op/activation.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// exp(-x), its argument clamped to where it is finite; NaN gives a finite number.
HWY_INLINE Floats exp_of_minus(Floats x) {
  const Floats lowest = hn::Set(FloatTag(), -88.0f);
  return hn::Exp(FloatTag(), hn::Neg(hn::IfThenElse(hn::Lt(x, lowest), lowest, x)));
}

/// x * sigmoid(t).
HWY_INLINE Floats gated(Floats x, Floats t) { return hn::Div(x, hn::Add(hn::Set(FloatTag(), 1.0f), exp_of_minus(t))); }

/// (1 + erf(x / sqrt 2)) / 2 after Abramowitz and Stegun 7.1.26, absolute error below 1e-7; the tail of negative x does not cancel.
HWY_INLINE Floats normal_distribution(Floats x) {
  const FloatTag d;
  const Floats one = hn::Set(d, 1.0f), magnitude = hn::Abs(x);
  const Floats t = hn::Div(one, hn::MulAdd(magnitude, hn::Set(d, 0.3275911f * 0.70710678f), one));
  Floats polynomial = hn::Set(d, 1.061405429f);
  for (const float coefficient : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f}) polynomial = hn::MulAdd(polynomial, t, hn::Set(d, coefficient));
  const Floats square = hn::Mul(hn::Mul(magnitude, magnitude), hn::Set(d, 0.5f));
  const Floats limit = hn::Set(d, 88.0f);
  const Floats tail = hn::Mul(hn::Mul(hn::Mul(polynomial, t), hn::Set(d, 0.5f)), exp_of_minus(hn::IfThenElse(hn::Gt(square, limit), limit, square)));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
}

HWY_INLINE Floats activate(Activation activation, Floats x) {
  const FloatTag d;
  switch (activation) {
    case Activation::identity: return x;
    case Activation::relu: return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
    case Activation::sigmoid: return hn::IfThenElse(hn::IsNaN(x), x, gated(hn::Set(d, 1.0f), x));
    case Activation::silu: return gated(x, x);
    case Activation::gelu: return hn::Mul(x, normal_distribution(x));
    case Activation::gelu_tanh: {
      const Floats cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), hn::Set(d, 0.044715f)), x, x);
      return gated(x, hn::Mul(cubic, hn::Set(d, 1.5957691216f)));
    }
    case Activation::gelu_quick: return gated(x, hn::Mul(x, hn::Set(d, 1.702f)));
  }
  return x;
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
