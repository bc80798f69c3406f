// Element access for references: any element type, strided leading dimensions, doubles in between.
#pragma once

#include <cmath>
#include <cstring>

#include "format/element.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

/// Operands of a reference run. Views may be strided in their leading dimensions.
struct ReferenceCall {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  const Attributes& attributes;
  /// Per output and dense element: the sum of the absolute terms that were added, which scales the error bound.
  /// A reference that leaves an entry at 0 means "the result's own magnitude".
  std::vector<std::vector<double>>* magnitude = nullptr;

  bool has(std::size_t i) const { return i < inputs.size() && inputs[i].present; }
};

/// Offset, in elements, of dense index `index` of a view whose dimensions may be strided. Dimensions that lie in memory
/// as one are divided by as one: a view without gaps needs no division.
inline std::int64_t element_offset(const TensorView& view, std::int64_t index) {
  std::int64_t offset = 0;
  for (int axis = view.shape.rank() - 1; axis >= 0; --axis) {
    const std::int64_t stride = view.strides[axis];
    std::int64_t extent = view.shape[axis];
    for (; axis > 0 && view.strides[axis - 1] == stride * extent; --axis) extent *= view.shape[axis - 1];
    if (index < extent) return offset + index * stride;
    offset += index % extent * stride;
    index /= extent;
  }
  return offset;
}

/// Element at a dense (row-major) index.
inline double load(const TensorView& view, std::int64_t index) {
  return format::load_element(view.data, view.dtype, element_offset(view, index));
}
/// Writes with the one rounding of the output.
inline void store(const TensorView& view, std::int64_t index, double value) {
  format::store_element(view.data, view.dtype, element_offset(view, index), value);
}
/// Copies one element: bit for bit between equal types, else as store(load()).
inline void copy_element(const TensorView& from, std::int64_t i, const TensorView& to, std::int64_t j) {
  if (from.dtype != to.dtype) return store(to, j, load(from, i));
  const auto bytes = byte_size(from.dtype);
  std::memcpy(to.as<char>() + element_offset(to, j) * bytes, from.as<const char>() + element_offset(from, i) * bytes,
              static_cast<std::size_t>(bytes));
}
/// Element as an index: exact for every integer type that fits.
inline std::int64_t load_index(const TensorView& view, std::int64_t index) {
  return static_cast<std::int64_t>(load(view, index));
}

/// Element of an integer type that int64 holds, exactly.
inline std::int64_t load_integer(const TensorView& view, std::int64_t index) {
  if (view.dtype == DType::i64) return view.as<const std::int64_t>()[element_offset(view, index)];
  return static_cast<std::int64_t>(load(view, index));
}
/// Writes an integer that the element type holds, exactly.
inline void store_integer(const TensorView& view, std::int64_t index, std::int64_t value) {
  if (view.dtype == DType::i64) view.as<std::int64_t>()[element_offset(view, index)] = value;
  else store(view, index, static_cast<double>(value));
}

/// Records the magnitude of an output element if the caller requested it.
inline void note_magnitude(const ReferenceCall& call, std::size_t output, std::int64_t index, double magnitude) {
  if (call.magnitude) (*call.magnitude)[output][static_cast<std::size_t>(index)] = magnitude;
}

/// Throws unless 0 <= value < bound; names operator and operand.
void check_index(std::string_view op, std::string_view operand, std::int64_t value, std::int64_t bound);
/// The index in [0, bound) of a value that may count from the end; throws unless -bound <= value < bound.
std::int64_t checked_signed_index(std::string_view op, std::string_view operand, std::int64_t value,
                                  std::int64_t bound);

}  // namespace cermet
