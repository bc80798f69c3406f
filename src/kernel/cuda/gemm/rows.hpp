// Leading axes that several operands share, merged into as few as walk all of them evenly: batches of rows.
#pragma once

#include <array>
#include <span>

#include "base/tensor.hpp"

namespace cermet::cuda {

/// Elements from one row to the next along each leading axis of a result, for one operand; 0 repeats the operand.
using AxisSteps = std::array<std::int64_t, Shape::max_rank>;

/// Steps of a view along the `leads` leading axes of a result; the view ends with `trailing` axes of its own, and axes
/// of size 1 repeat.
AxisSteps steps_along(const TensorView& view, int leads, int trailing);

/// What is left of the axes: the last is m, those before it are batches.
struct RowAxes {
  std::array<std::int64_t, Shape::max_rank> dims{};
  int rank = 0;  ///< at least 1
  std::int64_t m() const { return dims[static_cast<std::size_t>(rank - 1)]; }
  std::int64_t batches() const;
};

/// Merges the `leads` leading axes of `result`, and the operands' steps accordingly. Operand `fixed` has step 0 along
/// m.
RowAxes merge_axes(const Shape& result, int leads, std::span<AxisSteps> operands, std::size_t fixed);

}  // namespace cermet::cuda
