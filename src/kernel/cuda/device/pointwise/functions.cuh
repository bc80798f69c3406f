// Every elementwise operator as a function of values: the rows of pointwise.inc.
#pragma once

#include "kernel/cuda/device/pointwise/math.cuh"

namespace cermet::pointwise {

// One struct for each row, with its expression for any value type V. What an expression does not use stays silent.
#define FUNCTIONS(name, FIRST, P, Q, expression)                                                       \
  struct name##_row {                                                                                  \
    template <class V>                                                                                 \
    static CERMET_DEVICE V apply([[maybe_unused]] V FIRST, [[maybe_unused]] V b, [[maybe_unused]] V P, \
                                 [[maybe_unused]] V Q) {                                               \
      return expression;                                                                               \
    }                                                                                                  \
  };
#define UNARY(name, types, result, depth, terms, text, expression) FUNCTIONS(name, x, p_, q_, expression)
#define UNARY1(name, types, result, depth, p, p_default, terms, text, expression) FUNCTIONS(name, x, p, q_, expression)
#define UNARY2(name, types, result, depth, p, p_default, q, q_default, terms, text, expression) \
  FUNCTIONS(name, x, p, q, expression)
#define BINARY(name, types, result, properties, depth, terms, text, expression) FUNCTIONS(name, a, p_, q_, expression)
#include "op/pointwise.inc"
#undef FUNCTIONS

/// A value that no instruction is contracted over: what computed it has rounded it.
CERMET_DEVICE float settled(float x) {
  asm("" : "+f"(x));
  return x;
}

/// a / b for a and b that f16 holds, before it is rounded to f16: the residual of a first quotient makes it near
/// enough, for the exact quotient lies at least 2^-23 of itself from where f16 rounds the other way. No branch for rare
/// operands, unlike __fdiv_rn.
CERMET_DEVICE float f16_quotient(float a, float b) {
  const float inverse = reciprocal(b), first = a * inverse, residual = fmaf(-first, b, a);
  return fabsf(residual) > 0 ? fmaf(residual, inverse, first)
                             : first;  // no residual, or NaN, of zeros and what is not finite
}

// ---- For results that are rounded to 16 bits from values that were not: fast edges. Errors are far below such a
// rounding.

/// 1 / (1 + e^-x), off by |x| 2^-23 of itself: a third of the instructions.
CERMET_DEVICE float coarse_sigmoid(float x) {
  float e;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(x * -1.44269504f));
  return reciprocal(1.0f + e);
}
CERMET_DEVICE float coarse_silu(float x) { return x * coarse_sigmoid(x); }
CERMET_DEVICE float coarse_gelu_tanh(float x) { return x * coarse_sigmoid(2.0f * gelu_tanh_argument(Real(x)).v); }
/// normal_cdf with five terms, off by 2^-15.7 of itself from -6.5 on: for f16, whose smallest number is near x there.
CERMET_DEVICE float coarse_gelu(float x) {
  const float z = fabsf(x), t = reciprocal(fmaf(0.35f, z, 1.0f));
  float tail = -0.09564772248268127f, power;
  tail = fmaf(tail, t, 0.27095943689346313f);
  tail = fmaf(tail, t, 0.02215011790394783f);
  tail = fmaf(tail, t, 0.16547296941280365f);
  tail = fmaf(tail, t, 0.13707415759563446f);
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(z * z * -0.72134752044448170f));
  const float beyond = tail * t * power;
  return x * (x < 0 ? beyond : 1.0f - beyond);
}

/// Two numbers rounded to f16, the first in the low half.
CERMET_DEVICE uint32_t f16_pair(float low, float high) {
#if CERMET_ARCH >= 800
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return static_cast<uint32_t>(from_float<f16>(low).bits) | static_cast<uint32_t>(from_float<f16>(high).bits) << 16;
#endif
}
CERMET_DEVICE float low_half(uint32_t pair) {
  float x;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.f32.f16 %0, low;\n}" : "=f"(x) : "r"(pair));
  return x;
}
CERMET_DEVICE float high_half(uint32_t pair) {
  float x;
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.f32.f16 %0, high;\n}" : "=f"(x) : "r"(pair));
  return x;
}
/// Both halves, rounded once: as float32 arithmetic that is rounded to f16 afterwards, because 24 bits are more than
/// twice 11.
CERMET_DEVICE uint32_t add_pairs(uint32_t a, uint32_t b) {
  uint32_t y;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}
CERMET_DEVICE uint32_t sub_pairs(uint32_t a, uint32_t b) {
  uint32_t y;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}
CERMET_DEVICE uint32_t mul_pairs(uint32_t a, uint32_t b) {
  uint32_t y;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
  return y;
}

}  // namespace cermet::pointwise
