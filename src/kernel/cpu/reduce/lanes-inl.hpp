// Sums and extremes over vectors of lanes, in one order for all kernels that reduce rows. Include after
// <hwy/foreach_target.h>.
#if defined(CERMET_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_LANES_INL
#undef CERMET_LANES_INL
#else
#define CERMET_LANES_INL
#endif

#include <limits>

#include "kernel/cpu/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

struct Sum {
  static constexpr double identity = 0;
  static HWY_INLINE Real combine(Real a, Real b) { return a + b; }
};
struct Product {
  static constexpr double identity = 1;
  static HWY_INLINE Real combine(Real a, Real b) { return a * b; }
};
struct Maximum {
  static constexpr double identity = -std::numeric_limits<double>::infinity();
  static HWY_INLINE Real combine(Real a, Real b) { return maximum(a, b); }
};
struct Minimum {
  static constexpr double identity = std::numeric_limits<double>::infinity();
  static HWY_INLINE Real combine(Real a, Real b) { return minimum(a, b); }
};

/// All lanes as one number, in a fixed order.
template <class Op>
HWY_INLINE float combine_lanes(Real v) {
  const FloatTag d;
  if constexpr (std::is_same_v<Op, Sum>) return sum_lanes(v.v);
  if constexpr (std::is_same_v<Op, Maximum> || std::is_same_v<Op, Minimum>) {
    if (!hn::AllFalse(d, hn::IsNaN(v.v))) return std::numeric_limits<float>::quiet_NaN();
    return hn::GetLane(std::is_same_v<Op, Maximum> ? hn::MaxOfLanes(d, v.v) : hn::MinOfLanes(d, v.v));
  }
  HWY_ALIGN float lane[2 * hn::MaxLanes(FloatTag())] = {};  // the upper half feeds lanes that are not used
  for (std::size_t width = lanes() / 2; width > 0; width /= 2) {
    hn::Store(v.v, FloatTag(), lane);
    v = Op::combine(v, hn::LoadU(FloatTag(), lane + width));
  }
  return hn::GetLane(v.v);
}

/// Calls body(k, i, n) for the vectors of a tile, of which four that follow each other belong to totals k = 0 .. 3, and
/// those that are left to 0.
template <class Body>
HWY_INLINE void for_chains(std::size_t count, Body&& body) {
  const std::size_t step = lanes();
  std::size_t i = 0;
  for (; i + 4 * step <= count; i += 4 * step) {
    body(std::size_t{0}, i, step);
    body(std::size_t{1}, i + step, step);
    body(std::size_t{2}, i + 2 * step, step);
    body(std::size_t{3}, i + 3 * step, step);
  }
  for_vectors(count - i, [&](std::size_t j, std::size_t n) HWY_ATTR { body(std::size_t{0}, i + j, n); });
}

/// Combines the values of a tile with four totals.
template <class Op>
HWY_INLINE void combine_tile(const float* x, std::size_t count, Real (&total)[4]) {
  for_chains(count, [&](std::size_t k, std::size_t i, std::size_t n) HWY_ATTR {
    total[k] = Op::combine(total[k], load_n(x + i, n, static_cast<float>(Op::identity)));
  });
}
/// The four vectors as one number.
template <class Op>
float combine_all(const Real (&total)[4]) {
  return combine_lanes<Op>(Op::combine(Op::combine(total[0], total[1]), Op::combine(total[2], total[3])));
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
