// What follows a sum of a convolution: include after <hwy/foreach_target.h>.
#if defined(CERMET_CONV_CLAMP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_CONV_CLAMP_INL
#undef CERMET_CONV_CLAMP_INL
#else
#define CERMET_CONV_CLAMP_INL
#endif

#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// v within [low, high]; a NaN stays.
HWY_INLINE Floats clamp(Floats v, Floats low, Floats high) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  return hn::Min(high, hn::Max(low, v));  // the second operand is the result where either is NaN
#else
  return hn::IfThenElse(hn::IsNaN(v), v, hn::Min(hn::Max(v, low), high));
#endif
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
