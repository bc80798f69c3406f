// Where the elements of a value are in the memory it shares with another value.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.hpp"

namespace cermet {

/// Element offset from the start of the shared memory, and strides in elements. The first axis may be symbolic, so
/// strides are constants.
struct ValueLayout {
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;  ///< empty: dense
  bool is_dense() const { return strides.empty(); }
};

/// Layouts of an operator's results when they share operand 0's memory: reshapes, and splits of the last axis, whose
/// pieces are columns. Nothing where they must be copied.
std::optional<std::vector<ValueLayout>> view_layouts(const Problem& problem, const ValueLayout& operand);

/// Whether the last `dims` dimensions of a value with this layout are dense among themselves.
bool trailing_dense(const ValueLayout& layout, const TensorType& type, int dims);

/// The value's view, given where the shared memory begins.
TensorView make_view(std::byte* memory, const ValueLayout& layout, DType dtype, const Shape& shape);

}  // namespace cermet
