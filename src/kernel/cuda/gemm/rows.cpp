#include "kernel/cuda/gemm/rows.hpp"

#include <algorithm>

namespace cermet::cuda {

AxisSteps steps_along(const TensorView& view, int leads, int trailing) {
  AxisSteps steps{};
  const int own = view.shape.rank() - trailing;
  for (int axis = std::max(0, leads - own); axis < leads; ++axis) {
    const int at = axis - (leads - own);
    steps[static_cast<std::size_t>(axis)] = view.shape[at] == 1 ? 0 : view.strides[at];
  }
  return steps;
}

std::int64_t RowAxes::batches() const {
  std::int64_t count = 1;
  for (int axis = 0; axis + 1 < rank; ++axis) count *= dims[static_cast<std::size_t>(axis)];
  return count;
}

RowAxes merge_axes(const Shape& result, int leads, std::span<AxisSteps> operands, std::size_t fixed) {
  RowAxes axes;
  const auto push = [&](std::int64_t dim, int from) {
    const auto to = static_cast<std::size_t>(axes.rank++);
    axes.dims[to] = dim;
    for (AxisSteps& steps : operands) steps[to] = from < 0 ? 0 : steps[static_cast<std::size_t>(from)];
  };
  for (int axis = 0; axis < leads; ++axis) {
    const std::int64_t dim = result[axis];
    const auto from = static_cast<std::size_t>(axis), last = static_cast<std::size_t>(std::max(0, axes.rank - 1));
    if (dim == 1) continue;
    const bool even = axes.rank > 0 && std::all_of(operands.begin(), operands.end(),
                                                   [&](const AxisSteps& s) { return s[last] == s[from] * dim; });
    if (!even) {
      push(dim, axis);
      continue;
    }
    axes.dims[last] *= dim;
    for (AxisSteps& steps : operands) steps[last] = steps[from];
  }
  if (axes.rank == 0 || operands[fixed][static_cast<std::size_t>(axes.rank - 1)] != 0) push(1, -1);
  return axes;
}

}  // namespace cermet::cuda
