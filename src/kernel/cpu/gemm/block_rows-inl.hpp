// How many rows a product takes at a time, by instruction set: include after <hwy/foreach_target.h>.
#if defined(CERMET_BLOCK_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_BLOCK_ROWS_INL
#undef CERMET_BLOCK_ROWS_INL
#else
#define CERMET_BLOCK_ROWS_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Most rows of one block: two vectors of accumulators for each, and room for weights in the 32 (16) vector registers.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int block_rows = 14;
#else
inline constexpr int block_rows = 6;
#endif

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
