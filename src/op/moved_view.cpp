#include "op/moved_view.hpp"

namespace cermet {

Permutation permutation_of(const Problem& transpose) {
  const Ints& given = transpose.attributes.integers("permutation");
  const int rank = transpose.input(0).rank();
  Permutation permutation{};
  for (int a = 0; a < rank; ++a)
    permutation[static_cast<std::size_t>(a)] =
        given.empty() ? rank - 1 - a : static_cast<int>(given[static_cast<std::size_t>(a)]);
  return permutation;
}

TensorView transposed(const TensorView& x, const Permutation& permutation, const Shape& shape) {
  Shape strides = shape;
  for (int a = 0; a < shape.rank(); ++a) strides[a] = x.strides[permutation[static_cast<std::size_t>(a)]];
  return {x.data, x.dtype, shape, strides};
}

TensorView sliced(const TensorView& x, const PerAxis<SliceBounds>& bounds, const Shape& shape) {
  const PerAxis<SliceRange> ranges = slice_ranges(bounds, x.shape, shape);
  Shape strides = shape;
  std::int64_t first = 0;
  for (int a = 0; a < shape.rank(); ++a) {
    const SliceRange& range = ranges[static_cast<std::size_t>(a)];
    strides[a] = range.count > 1 ? x.strides[a] * range.step : 0;  // a step beyond the axis is taken once
    if (range.count > 0) first += range.first * x.strides[a];
  }
  return {element_at(x, first), x.dtype, shape, strides};
}

TensorView expanded(const TensorView& x, const Shape& shape) {
  const int lead = shape.rank() - x.shape.rank();
  Shape strides = shape;
  for (int a = 0; a < shape.rank(); ++a) strides[a] = a < lead || x.shape[a - lead] == 1 ? 0 : x.strides[a - lead];
  return {x.data, x.dtype, shape, strides};
}

TensorView without_axes(const TensorView& y, std::uint32_t reduced, bool keepdims, int rank) {
  TensorView without = y;
  without.shape = without.strides = Shape();
  for (int a = 0, from = 0; a < rank; ++a) {
    const bool dropped = reduced >> a & 1u;
    if (dropped && !keepdims) continue;
    if (!dropped) {
      without.shape.push_back(y.shape[from]);
      without.strides.push_back(y.strides[from]);
    }
    ++from;
  }
  return without;
}

}  // namespace cermet
