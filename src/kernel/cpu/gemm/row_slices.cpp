#include "kernel/cpu/gemm/row_slices.hpp"

#include <optional>

namespace cermet::cpu {

bool is_even(const TensorView& view) {
  std::optional<std::int64_t> expected;
  for (int axis = view.shape.rank() - 1; axis >= 0; --axis) {
    if (view.shape[axis] == 1) continue;
    if (expected && view.strides[axis] != *expected) return false;
    expected = view.strides[axis] * view.shape[axis];
  }
  return true;
}

bool is_matrix(const TensorView& view) {
  for (int axis = 0; axis + 2 < view.shape.rank(); ++axis)
    if (view.shape[axis] != 1 && view.strides[axis] != view.strides[axis + 1] * view.shape[axis + 1]) return false;
  return true;
}

TensorView slice_rows(const TensorView& view, std::int64_t first, std::int64_t last) {
  const auto bytes = byte_size(view.dtype);
  if (view.shape.rank() == 1)
    return {view.as<std::byte>() + first * view.strides[0] * bytes, view.dtype, {last - first}, view.strides};
  const Rows rows(view);
  return {rows.row(first), view.dtype, {last - first, rows.length()}, {view.strides[view.shape.rank() - 2], 1}};
}

TensorView slice_values(const TensorView& view, std::int64_t first, std::int64_t last) {
  const Rows values(view, 0);
  const std::int64_t step = last - first > 1 ? (values.row(first + 1) - values.row(first)) / byte_size(view.dtype) : 1;
  return {values.row(first), view.dtype, {last - first}, {step}};
}

}  // namespace cermet::cpu
