// Values that share a scale as int8 elements. Include after <hwy/foreach_target.h>.
#if defined(CERMET_SHARED_SCALE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_SHARED_SCALE_INL
#undef CERMET_SHARED_SCALE_INL
#else
#define CERMET_SHARED_SCALE_INL
#endif

#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Divides by a scale and rounds, half to even, with the bits of a division, which takes 16 cycles for a vector on some
/// processors: a quotient that is less than a unit off, its remainder, which is exact, and the reciprocal, correctly
/// rounded, give the correctly rounded quotient. Markstein, "Computation of elementary functions on the IBM RISC
/// System/6000 processor", IBM Journal of Research and Development 34 (1990), theorem 8.
class SharedScale {
 public:
  /// Whether remainders are exact: multiply-adds round once, and nothing leaves the normal numbers.
  static bool takes(float scale) { return HWY_NATIVE_FMA && scale >= 0x1p-60f && scale <= 0x1p60f; }

  /// `zero_point`: an int8 that is added to the quotients, after which they are limited to int8.
  HWY_INLINE SharedScale(float scale, float zero_point)
      : scale_(hn::Set(FloatTag(), scale)),
        reciprocal_(hn::Set(FloatTag(), 1 / scale)),
        least_(hn::Set(FloatTag(), scale * (-128 - zero_point))),
        most_(hn::Set(FloatTag(), scale * (127 - zero_point))) {}

  /// What is added to rounded quotients: the unit of numbers around it is 1, and the last bits of such a sum are those
  /// of the whole number.
  static constexpr float anchor = 0x1.8p23f;
  /// anchor + round(x / scale), limited; of a NaN some NaN.
  HWY_INLINE Floats operator()(Floats x) const {
    const Floats limited = clamp(x, least_, most_);
    Floats quotient = hn::Mul(limited, reciprocal_);
    for (int step = 0; step < 2; ++step)
      quotient = hn::NegMulAdd(hn::MulSub(quotient, scale_, limited), reciprocal_, quotient);
    return hn::Add(quotient, hn::Set(FloatTag(), anchor));
  }

 private:
  Floats scale_, reciprocal_, least_, most_;
};

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
