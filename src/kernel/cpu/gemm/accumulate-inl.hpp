// The multiply-add of float32 products. Include after <hwy/foreach_target.h>.
#if defined(CERMET_ACCUMULATE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_ACCUMULATE_INL
#undef CERMET_ACCUMULATE_INL
#else
#define CERMET_ACCUMULATE_INL
#endif

#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// sum += x * weights. GCC likes to put the result into the register of x, and then spills accumulators in the largest
/// blocks, or loads x once for each tap; naming the instruction keeps the sum in place.
HWY_INLINE void accumulate(Floats& sum, Floats x, Floats weights) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(weights.raw));
#else
  sum = hn::MulAdd(x, weights, sum);
#endif
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
