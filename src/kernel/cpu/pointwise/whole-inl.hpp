// Vectors of int32 that read like a number, for the rows of pointwise.inc that take integers. Include after
// <hwy/foreach_target.h>.
#if defined(CERMET_WHOLE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_WHOLE_INL
#undef CERMET_WHOLE_INL
#else
#define CERMET_WHOLE_INL
#endif

#include "kernel/cpu/math-inl.hpp"
#include "op/wrapping.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FloatTag>;

/// Arithmetic wraps. Made from and given back as the bits of a vector of float32, which is what moves them.
struct Whole {
  hn::Vec<IntTag> v;

  HWY_INLINE Whole(hn::Vec<IntTag> vector) : v(vector) {}  // NOLINT(google-explicit-constructor): reads like a number
  HWY_INLINE Whole(double number)
      : v(hn::Set(IntTag(), static_cast<std::int32_t>(number))) {}  // NOLINT(google-explicit-constructor)
  static HWY_INLINE Whole of_bits(Floats bits) { return hn::BitCast(IntTag(), bits); }
  HWY_INLINE Floats bits() const { return hn::BitCast(FloatTag(), v); }
  friend HWY_INLINE Whole operator+(Whole a, Whole b) { return hn::Add(a.v, b.v); }
  friend HWY_INLINE Whole operator-(Whole a, Whole b) { return hn::Sub(a.v, b.v); }
  friend HWY_INLINE Whole operator*(Whole a, Whole b) { return hn::Mul(a.v, b.v); }
  friend HWY_INLINE Whole operator-(Whole a) { return hn::Neg(a.v); }
  friend HWY_INLINE Whole operator&(Whole a, Whole b) { return hn::And(a.v, b.v); }
  friend HWY_INLINE Whole operator|(Whole a, Whole b) { return hn::Or(a.v, b.v); }
  friend HWY_INLINE Whole operator^(Whole a, Whole b) { return hn::Xor(a.v, b.v); }
  friend HWY_INLINE Whole operator~(Whole a) { return hn::Not(a.v); }
};

struct WholeCondition {
  hn::Mask<IntTag> mask;
};
HWY_INLINE WholeCondition operator<(Whole a, Whole b) { return {hn::Lt(a.v, b.v)}; }
HWY_INLINE WholeCondition operator<=(Whole a, Whole b) { return {hn::Not(hn::Gt(a.v, b.v))}; }
HWY_INLINE WholeCondition operator>(Whole a, Whole b) { return {hn::Gt(a.v, b.v)}; }
HWY_INLINE WholeCondition operator>=(Whole a, Whole b) { return {hn::Not(hn::Lt(a.v, b.v))}; }
HWY_INLINE WholeCondition operator==(Whole a, Whole b) { return {hn::Eq(a.v, b.v)}; }
HWY_INLINE WholeCondition operator!=(Whole a, Whole b) { return {hn::Ne(a.v, b.v)}; }
HWY_INLINE Whole select(WholeCondition condition, Whole yes, Whole no) {
  return hn::IfThenElse(condition.mask, yes.v, no.v);
}
HWY_INLINE Whole abs(Whole x) { return hn::Abs(x.v); }
HWY_INLINE Whole maximum(Whole a, Whole b) { return hn::Max(a.v, b.v); }
HWY_INLINE Whole minimum(Whole a, Whole b) { return hn::Min(a.v, b.v); }

/// Calls a function of integers for each lane: for what vectors have no instruction for.
template <class Function>
HWY_INLINE Whole per_lane(Whole a, Whole b, Function function) {
  HWY_ALIGN std::int32_t x[hn::MaxLanes(IntTag())], y[hn::MaxLanes(IntTag())];
  hn::Store(a.v, IntTag(), x);
  hn::Store(b.v, IntTag(), y);
  for (std::size_t i = 0; i < lanes(); ++i)
    x[i] = static_cast<std::int32_t>(function(Integer(x[i]), Integer(y[i])).value);
  return hn::Load(IntTag(), x);
}
HWY_INLINE Whole operator/(Whole a, Whole b) {
  return per_lane(a, b, [](Integer x, Integer y) { return x / y; });
}
HWY_INLINE Whole floor_mod(Whole a, Whole b) {
  return per_lane(a, b, [](Integer x, Integer y) { return floor_mod(x, y); });
}
HWY_INLINE Whole trunc_mod(Whole a, Whole b) {
  return per_lane(a, b, [](Integer x, Integer y) { return trunc_mod(x, y); });
}
HWY_INLINE Whole pow(Whole a, Whole b) {
  return per_lane(a, b, [](Integer x, Integer y) { return pow(x, y); });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
