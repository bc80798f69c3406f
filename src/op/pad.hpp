// Where an element of a padded tensor comes from: shared by the reference and the kernel of pad.
#pragma once

#include <cstdint>

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

}  // namespace cermet
