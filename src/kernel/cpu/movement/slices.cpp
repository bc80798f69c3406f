#include "kernel/cpu/movement/slices.hpp"

#include "op/schema/reference.hpp"

namespace cermet::cpu {

std::int64_t slice_offset(const TensorView& x, int first, const TensorView& indices, std::int64_t row_offset,
                          std::string_view op) {
  std::int64_t offset = 0;
  for (int j = 0; j < static_cast<int>(indices.shape.back()); ++j) {
    const std::int64_t at = row_offset + j;
    const std::int64_t index =
        indices.dtype == DType::i64 ? indices.as<const std::int64_t>()[at] : indices.as<const std::int32_t>()[at];
    offset += checked_signed_index(op, "1 (indices)", index, x.shape[first + j]) * x.strides[first + j];
  }
  return offset;
}

Slice::Slice(const TensorView& a, int from_a, const TensorView& b, int from_b) {
  for (int axis = from_a, other = from_b; axis < a.shape.rank(); ++axis, ++other) {
    runs *= a.shape[axis];
    outer.append(a.shape[axis], {a.strides[axis], b.strides[other]});
  }
  const int last = outer.rank() - 1;
  if (last < 0 || outer.stride[0][last] != 1 || outer.stride[1][last] != 1) return;
  run = outer.shape[last];
  runs = 1;
  StridedAxes<2> leading;
  for (int axis = 0; axis < last; ++axis) {
    leading.push_back(outer.shape[axis], outer.strides_of(axis));
    runs *= outer.shape[axis];
  }
  outer = leading;
}

}  // namespace cermet::cpu
