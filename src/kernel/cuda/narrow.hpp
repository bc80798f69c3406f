// Sizes for the 32-bit fields of a launch's parameters.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.hpp"

namespace cermet::cuda {

/// What a task counts in 32 bits at most: rounded up to a tile it is still below 2^31.
inline constexpr std::int64_t most_narrow = (std::int64_t{1} << 31) - 1024;

/// `value` where a task can count it; otherwise throws Error: "gemm: expected at most 2147482624 rows, found
/// 4294967296".
inline std::int32_t narrow(std::int64_t value, std::string_view who, std::string_view what) {
  require(value >= 0 && value <= most_narrow, "{}: expected at most {} {}, found {}", who, most_narrow, what, value);
  return static_cast<std::int32_t>(value);
}

}  // namespace cermet::cuda
