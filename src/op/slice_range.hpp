// The range of a slice along one axis, shared by its operator, reference and kernel.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/tensor.hpp"
#include "op/schema/attributes.hpp"

namespace cermet {

struct SliceRange {
  std::int64_t first = 0, step = 1, count = 0;  ///< positions first, first + step, .., `count` of them
};

/// Clamps start and end (negative ones count from the end of the axis) as NumPy and ONNX do; step is not 0.
inline SliceRange slice_range(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t size) {
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto clamped = [&](std::int64_t at) { return std::clamp(at < 0 ? at + size : at, low, high); };
  SliceRange range{clamped(start), step, 0};
  const std::int64_t distance = clamped(end) - range.first;
  // Divided before rounding up, so that steps near the limits of 64 bits cannot overflow.
  if (step > 0 && distance > 0) range.count = (distance - 1) / step + 1;
  if (step < 0 && distance < 0) range.count = (distance + 1) / step + 1;
  return range;
}

/// `count` positions from `start` on (a negative one counts from the end of the axis, the largest number stands for the
/// place from which on the last ones are taken); nothing where one of them is outside.
inline std::optional<SliceRange> counted_range(std::int64_t start, std::int64_t count, std::int64_t step,
                                               std::int64_t size) {
  if (count == 0) return SliceRange{0, step, 0};
  const bool is_last = start == std::numeric_limits<std::int64_t>::max() && step > 0;
  const __int128 first = is_last     ? size - 1 - static_cast<__int128>(count - 1) * step
                         : start < 0 ? start + size
                                     : start,
                 last = first + static_cast<__int128>(count - 1) * step;
  if (std::min(first, last) < 0 || std::max(first, last) >= size) return {};
  return SliceRange{static_cast<std::int64_t>(first), step, count};
}

/// The range requested of `slice` along one axis.
struct SliceBounds {
  std::int64_t start = 0, end = std::numeric_limits<std::int64_t>::max(), step = 1;
  bool counted = false;  ///< the result's dimension says how many positions, not the end
};
template <class T>
using PerAxis = std::array<T, Shape::max_rank>;

/// Bounds on every axis of an operand of `rank` dimensions, from attributes that inference has accepted.
PerAxis<SliceBounds> slice_bounds(const Attributes& attributes, int rank);
/// Ranges on every axis of x. Throws Error where a dimension that was symbolic is too short for the result's shape.
PerAxis<SliceRange> slice_ranges(const PerAxis<SliceBounds>& bounds, const Shape& x, const Shape& y);

}  // namespace cermet
