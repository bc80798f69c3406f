#include "runtime/view_layout.hpp"

#include <algorithm>
#include <deque>

#include "op/schema/operator.hpp"

namespace cermet {
namespace {

/// Strides of a dense value; nothing where one is not a constant. A dimension of 1 may have any stride: 0 in front of
/// symbols.
std::optional<std::vector<std::int64_t>> dense_strides_of(const TensorType& type) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(type.rank()));
  std::int64_t step = 1;  // 0: after a symbol
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = step;
    if (step == 0 && type.dims[axis] != Dim(1)) return {};
    step *= type.dims[axis].is_constant() ? type.dims[axis].constant() : 0;
  }
  return strides;
}

std::optional<std::vector<std::int64_t>> strides_of(const ValueLayout& layout, const TensorType& type) {
  return layout.is_dense() ? dense_strides_of(type) : std::optional(layout.strides);
}

/// Strides of strided memory seen with other dimensions: each is a product of neighbours that are dense among
/// themselves, or a factor of one.
std::optional<std::vector<std::int64_t>> regrouped(const Dims& from, const std::vector<std::int64_t>& strides,
                                                   const Dims& to) {
  struct Piece {
    Dim extent;
    std::int64_t stride;
  };
  std::deque<Piece> left;
  for (std::size_t axis = 0; axis < from.size(); ++axis)
    if (from[axis] != Dim(1)) left.push_back({from[axis], strides[axis]});
  std::vector<std::int64_t> result(to.size());
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    if (to[axis] == Dim(0)) return {};
    for (Dim remaining = to[axis]; remaining != Dim(1);) {
      if (left.empty()) return {};
      Piece& next = left.front();
      if (remaining != to[axis] && (!next.extent.is_constant() || result[axis] != next.stride * next.extent.constant()))
        return {};
      if (const auto quotient = exact_quotient(remaining, next.extent)) {
        remaining = *quotient;
        result[axis] = next.stride;
        left.pop_front();
        continue;
      }
      const auto inner = exact_quotient(next.extent, remaining);
      if (!inner || !inner->is_constant() || remaining != to[axis]) return {};
      result[axis] = next.stride * inner->constant();
      next.extent = *inner;
      remaining = 1;
    }
  }
  for (std::size_t axis = to.size(); axis-- > 0;) {
    if (to[axis] != Dim(1)) continue;
    const bool known = axis + 1 < to.size() && to[axis + 1].is_constant();
    result[axis] = axis + 1 == to.size() ? 1 : known ? result[axis + 1] * to[axis + 1].constant() : 0;
  }
  return result;
}

std::optional<ValueLayout> reshaped(const ValueLayout& operand, const TensorType& from, const TensorType& to) {
  if (operand.is_dense()) return operand;
  auto strides = regrouped(from.dims, operand.strides, to.dims);
  if (!strides) return {};
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
  if (!dense) return false;
  for (auto axis = static_cast<std::size_t>(std::max(0, type.rank() - dims)); axis < dense->size(); ++axis)
    if (type.dims[axis] != Dim(1) && (*dense)[axis] != layout.strides[axis]) return false;
  return true;
}

TensorView make_view(std::byte* memory, const ValueLayout& layout, DType dtype, const Shape& shape) {
  TensorView view(memory + layout.offset * byte_size(dtype), dtype, shape);
  for (std::size_t axis = 0; axis < layout.strides.size(); ++axis)
    view.strides[static_cast<int>(axis)] = layout.strides[axis];
  return view;
}

}  // namespace cermet
