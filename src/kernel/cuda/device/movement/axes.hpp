// Axes that several operands share, each with its own strides, as tasks walk them: positions are taken apart with
// multiplications instead of divisions.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet {

/// Most axes after neighbours were merged: the 8 of a tensor, and two that an operator may add.
inline constexpr int max_axes = 10;

/// Divides n < 2^31 by a constant (Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI
/// 1994).
struct Divisor {
  uint32_t divisor, multiplier, shift;
};

/// Outermost first. Strides in elements or, where a kernel widened its words, in words; 0 repeats, a negative one walks
/// backwards.
template <int N>
struct Axes {
  int32_t rank;   ///< at least 1
  int32_t wide;   ///< whether positions reach 2^31
  int64_t count;  ///< product of the sizes
  int64_t size[max_axes];
  Divisor by[max_axes];
  int64_t stride[N][max_axes];
};

}  // namespace cermet
