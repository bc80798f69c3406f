#include "op/schema/axes.hpp"

#include <algorithm>

#include "op/schema/infer.hpp"

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

std::vector<int> axes_in_order(const Problem& problem, std::string_view name, int rank) {
  const Ints& axes = problem.attributes.integers(name);
  std::vector<int> wrapped;
  for (const std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank) bad_attribute(problem, name, fmt::format("axes in [{}, {})", -rank, rank));
    wrapped.push_back(wrap_axis(axis, rank));
    if (std::count(wrapped.begin(), wrapped.end(), wrapped.back()) > 1)
      bad_attribute(problem, name, "each axis at most once");
  }
  return wrapped.empty() ? wrap_axes(axes, rank) : wrapped;
}

std::vector<int> axes_attribute(const Problem& problem, std::string_view name, int rank) {
  std::vector<int> axes = axes_in_order(problem, name, rank);
  std::sort(axes.begin(), axes.end());
  return axes;
}

std::vector<int> wrap_axes(const Ints& axes, int rank) {
  std::vector<int> wrapped(axes.empty() ? static_cast<std::size_t>(rank) : axes.size());
  for (std::size_t i = 0; i < wrapped.size(); ++i)
    wrapped[i] = axes.empty() ? static_cast<int>(i) : wrap_axis(axes[i], rank);
  std::sort(wrapped.begin(), wrapped.end());
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
