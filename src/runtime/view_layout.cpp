#include "runtime/view_layout.hpp"

#include <algorithm>

#include "op/operator.hpp"

namespace cermet {
namespace {

/// Strides of a dense value whose dimensions, but for the first, are constants; nothing for others.
std::optional<std::vector<std::int64_t>> dense_strides_of(const TensorType& type) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(type.rank()));
  std::int64_t step = 1;
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = step;
    if (axis == 0) break;
    if (!type.dims[axis].is_constant()) return {};
    step *= type.dims[axis].constant();
  }
  return strides;
}

std::optional<std::vector<std::int64_t>> strides_of(const ValueLayout& layout, const TensorType& type) {
  return layout.is_dense() ? dense_strides_of(type) : std::optional(layout.strides);
}

/// A reshape keeps the first axis of strided memory and splits the rest, which is dense, differently.
std::optional<ValueLayout> reshaped(const ValueLayout& operand, const TensorType& from, const TensorType& to) {
  if (operand.is_dense()) return operand;
  if (from.rank() < 2 || to.rank() < 2 || from.dims[0] != to.dims[0] || !trailing_dense(operand, from, from.rank() - 1)) return {};
  auto strides = dense_strides_of(to);
  if (!strides) return {};
  (*strides)[0] = operand.strides[0];
  return ValueLayout{operand.offset, std::move(*strides)};
}

std::optional<std::vector<ValueLayout>> split_columns(const Problem& problem, const ValueLayout& operand) {
  const TensorType& from = problem.input(0);
  const std::int64_t axis = problem.attributes.integer("axis");
  if (from.rank() < 2 || (axis != -1 && axis != from.rank() - 1)) return {};
  const auto strides = strides_of(operand, from);
  if (!strides) return {};
  std::vector<ValueLayout> pieces;
  std::int64_t offset = operand.offset;
  for (const TensorType& piece : problem.outputs) {
    const Dim width = piece.dims.back();
    if (!width.is_constant()) return {};
    pieces.push_back({offset, *strides});
    offset += width.constant();
  }
  return pieces;
}

}  // namespace

std::optional<std::vector<ValueLayout>> view_layouts(const Problem& problem, const ValueLayout& operand) {
  if (problem.op->kind == OpKind::split) return split_columns(problem, operand);
  if (!definition(problem).is_view) return {};
  const auto layout = reshaped(operand, problem.input(0), problem.outputs[0]);
  if (!layout) return {};
  return std::vector{*layout};
}

bool trailing_dense(const ValueLayout& layout, const TensorType& type, int dims) {
  if (layout.is_dense()) return true;
  const auto dense = dense_strides_of(type);
  const auto from = static_cast<std::size_t>(std::max(0, type.rank() - dims));
  return dense && std::equal(dense->begin() + static_cast<std::ptrdiff_t>(from), dense->end(), layout.strides.begin() + static_cast<std::ptrdiff_t>(from));
}

TensorView make_view(std::byte* memory, const ValueLayout& layout, DType dtype, const Shape& shape) {
  TensorView view(memory + layout.offset * static_cast<std::int64_t>(size_of(dtype)), dtype, shape);
  for (std::size_t axis = 0; axis < layout.strides.size(); ++axis) view.strides[static_cast<int>(axis)] = layout.strides[axis];
  return view;
}

}  // namespace cermet
