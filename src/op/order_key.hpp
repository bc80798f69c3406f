// The order in which topk ranks elements: shared by its reference and its kernels.
#pragma once

#include <cstdint>
#include <limits>

#include "format/half.hpp"

namespace cermet {

/// An integer that orders like the number: -0 equals +0, NaN is above everything.
inline std::int64_t order_key(float x) {
  if (x != x) return std::numeric_limits<std::int64_t>::max();
  const auto bits = static_cast<std::int32_t>(format::float_bits(x));
  return bits >= 0 ? bits : -static_cast<std::int64_t>(bits & 0x7fffffff);
}
inline std::int64_t order_key(std::int64_t x) { return x; }

}  // namespace cermet
