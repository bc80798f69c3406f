// Axes named by attributes, and coordinates of dense indices: shared by the operators that move elements.
#pragma once

#include <vector>

#include "op/schema/problem.hpp"

namespace cermet {

/// Axis in [0, rank) of an axis that may count from the end; asserts that it is in range.
int wrap_axis(std::int64_t axis, int rank);
/// Value of an integer attribute as an axis of `rank` dimensions; throws Error naming the attribute unless -rank <=
/// axis < rank.
int axis_attribute(const Problem& problem, std::string_view name, int rank);
/// Value of an attribute as distinct axes, in rising order; an empty list means every axis. Throws Error naming the
/// attribute.
std::vector<int> axes_attribute(const Problem& problem, std::string_view name, int rank);
/// The same, in the order of the attribute.
std::vector<int> axes_in_order(const Problem& problem, std::string_view name, int rank);
/// In rising order, the axes of a list that axes_attribute has accepted before.
std::vector<int> wrap_axes(const Ints& axes, int rank);

/// Coordinates of a dense (row-major) index.
Shape coordinates(const Shape& shape, std::int64_t index);
/// Dense index of coordinates.
std::int64_t dense_index(const Shape& shape, const Shape& at);

}  // namespace cermet
