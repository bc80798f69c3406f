// What rows are divided by in root-mean-square normalization. Include after <hwy/foreach_target.h>.
#if defined(CERMET_INVERSE_RMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_INVERSE_RMS_INL
#undef CERMET_INVERSE_RMS_INL
#else
#define CERMET_INVERSE_RMS_INL
#endif

#include <cmath>

#include "kernel/cpu/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// 1 / sqrt(mean(x^2) + eps)
template <class X>
float inverse_rms(const X* x, std::size_t length, float eps) {
  auto squares = hn::Zero(FloatTag());
  for_vectors(length, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const auto v = load_n(x + i, n);
    squares = hn::MulAdd(v, v, squares);
  });
  return 1.0f / std::sqrt(sum_lanes(squares) / static_cast<float>(length) + eps);
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
