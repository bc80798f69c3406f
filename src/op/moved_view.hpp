// What the operators that only move elements copy from: the elements of x in the result's order, as a view of x.
#pragma once

#include "base/tensor.hpp"
#include "op/schema/problem.hpp"
#include "op/slice_range.hpp"

namespace cermet {

/// Axis of x that axis i of the result is.
using Permutation = PerAxis<int>;
/// That of a transpose; without the attribute axes are reversed.
Permutation permutation_of(const Problem& transpose);

/// Address of the element at `offset`, in elements, of a view.
inline void* element_at(const TensorView& view, std::int64_t offset) {
  return view.as<std::byte>() + offset * byte_size(view.dtype);
}

/// x with its axes permuted; `shape` is the result's.
TensorView transposed(const TensorView& x, const Permutation& permutation, const Shape& shape);
/// The elements of a slice, of which there is at least one. Throws Error where a dimension that was symbolic is too
/// short for `shape`, the result's.
TensorView sliced(const TensorView& x, const PerAxis<SliceBounds>& bounds, const Shape& shape);
/// x repeated along axes: those that it lacks in front, and where it has 1.
TensorView expanded(const TensorView& x, const Shape& shape);
/// A result of a reduction without the axes, of x's `rank`, whose bits are set and which `keepdims` left as 1.
TensorView without_axes(const TensorView& y, std::uint32_t reduced, bool keepdims, int rank);

}  // namespace cermet
