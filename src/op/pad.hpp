// Where an element of a padded tensor comes from: shared by the reference and the kernel of pad.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "base/tensor.hpp"
#include "op/schema/attributes.hpp"

namespace cermet {

enum class PadMode { constant, reflect, edge };

/// Position in an axis of `size` elements that position `at` of the padded axis reads; -1 for the constant. `before`
/// elements were put in front.
inline std::int64_t padded_source(PadMode mode, std::int64_t at, std::int64_t before, std::int64_t size) {
  const std::int64_t i = at - before;
  if (i >= 0 && i < size) return i;
  if (mode == PadMode::constant) return -1;
  if (mode == PadMode::edge) return i < 0 ? 0 : size - 1;
  return i < 0 ? -i : 2 * (size - 1) - i;
}

/// Elements before and after x on an axis, of which one entry of `pads` may leave one to the shapes. Throws Error where
/// y, whose dimensions were symbolic, is smaller than x.
inline std::pair<std::int64_t, std::int64_t> pads_of(const Ints& pads, int axis, const Shape& x, const Shape& y) {
  const auto a = static_cast<std::size_t>(axis);
  std::int64_t before = pads[a], after = pads[a + static_cast<std::size_t>(x.rank())];
  const std::int64_t both = y[axis] - x[axis];
  if (before < 0) before = both - after;
  if (after < 0) after = both - before;
  if (before < 0 || after < 0)
    fail(Status::invalid_argument, "pad: attribute 'dims': expected dimension {} of at least {}, found {}", axis,
         x[axis] + std::max<std::int64_t>(pads[a], 0) +
             std::max<std::int64_t>(pads[a + static_cast<std::size_t>(x.rank())], 0),
         y[axis]);
  return {before, after};
}

}  // namespace cermet
