#include "op/axes.hpp"

#include <algorithm>
#include <numeric>

#include "op/infer.hpp"

namespace cermet {

int wrap_axis(std::int64_t axis, int rank) {
  CERMET_ASSERT(axis >= -rank && axis < rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

int axis_attribute(const Problem& problem, std::string_view name, int rank) {
  const std::int64_t axis = problem.attributes.integer(name);
  if (axis < -rank || axis >= rank) bad_attribute(problem, name, fmt::format("an axis in [{}, {})", -rank, rank));
  return wrap_axis(axis, rank);
}

std::vector<int> axes_attribute(const Problem& problem, std::string_view name, int rank) {
  const Ints& axes = problem.attributes.integers(name);
  for (const std::int64_t axis : axes)
    if (axis < -rank || axis >= rank) bad_attribute(problem, name, fmt::format("axes in [{}, {})", -rank, rank));
  std::vector<int> wrapped = wrap_axes(axes, rank);
  if (std::adjacent_find(wrapped.begin(), wrapped.end()) != wrapped.end()) bad_attribute(problem, name, "each axis at most once");
  return wrapped;
}

std::vector<int> wrap_axes(const Ints& axes, int rank) {
  std::vector<int> wrapped;
  for (const std::int64_t axis : axes) wrapped.push_back(wrap_axis(axis, rank));
  std::sort(wrapped.begin(), wrapped.end());
  if (!wrapped.empty()) return wrapped;
  wrapped.resize(static_cast<std::size_t>(rank));
  std::iota(wrapped.begin(), wrapped.end(), 0);
  return wrapped;
}

Shape coordinates(const Shape& shape, std::int64_t index) {
  Shape at = shape;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    at[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return at;
}

std::int64_t dense_index(const Shape& shape, const Shape& at) {
  std::int64_t index = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) index = index * shape[axis] + at[axis];
  return index;
}

}  // namespace cermet
