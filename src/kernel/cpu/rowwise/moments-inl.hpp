// Mean and variance of a row, in one order for all normalizations that subtract a mean. Include after
// <hwy/foreach_target.h>.
#if defined(CERMET_MOMENTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_MOMENTS_INL
#undef CERMET_MOMENTS_INL
#else
#define CERMET_MOMENTS_INL
#endif

#include <cmath>

#include "kernel/cpu/reduce/lanes-inl.hpp"
#include "kernel/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

struct MeanAndScale {
  float mean, scale;  ///< scale = 1 / sqrt(variance + eps)
};

/// Two passes: the mean, then the squared deviations from it.
inline MeanAndScale statistics(RowIn x, std::size_t length, float eps) {
  TileBuffer buffer;
  Real total[4] = {0.0, 0.0, 0.0, 0.0};
  for_tiles(length,
            [&](std::size_t first, std::size_t n) HWY_ATTR { combine_tile<Sum>(x.read(first, n, buffer), n, total); });
  const float mean = combine_all<Sum>(total) / static_cast<float>(length);
  const auto center = hn::Set(FloatTag(), mean);
  auto squares = hn::Zero(FloatTag());
  for_tiles(length, [&](std::size_t first, std::size_t n) HWY_ATTR {
    const float* values = x.read(first, n, buffer);
    for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
      const auto deviation = hn::Sub(load_n(values + i, count, mean), center);
      squares = hn::MulAdd(deviation, deviation, squares);
    });
  });
  return {mean, 1.0f / std::sqrt(sum_lanes(squares) / static_cast<float>(length) + eps)};
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
