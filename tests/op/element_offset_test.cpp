// Offsets of elements in views, against a walk over their dimensions.
#include <gtest/gtest.h>

#include "op/schema/reference.hpp"

namespace cermet {
namespace {

/// By one division for each dimension.
std::int64_t walked_offset(const TensorView& view, std::int64_t index) {
  std::int64_t offset = 0;
  for (int axis = view.shape.rank() - 1; axis >= 0; --axis) {
    offset += index % view.shape[axis] * view.strides[axis];
    index /= view.shape[axis];
  }
  return offset;
}

TEST(ElementOffset, IsThatOfAWalkOverTheDimensions) {
  const std::pair<Shape, Shape> views[]{
      {{2, 3, 4, 5}, {60, 20, 5, 1}},   // dense
      {{2, 3, 4, 5}, {72, 24, 6, 1}},   // gaps after rows
      {{2, 3, 4, 5}, {100, 20, 5, 1}},  // gaps after the two inner dimensions
      {{2, 3, 4, 5}, {1, 2, 6, 24}},    // transposed
      {{2, 3, 4, 5}, {20, 40, 5, 1}},   // two exchanged
      {{2, 3, 4, 5}, {0, 5, 0, 1}},     // repeated
      {{2, 3, 4, 5}, {0, 0, 0, 0}},     // one element
      {{2, 1, 4, 1}, {4, 7, 1, 9}},     // steps of single elements, which mean nothing
      {{1, 5}, {3, 2}},
      {{7}, {3}},
      {{}, {}},
  };
  for (const auto& [shape, strides] : views) {
    const TensorView view(nullptr, DType::f32, shape, strides);
    const std::int64_t elements = shape.elements();
    for (std::int64_t i = 0; i < 2 * elements; ++i)
      EXPECT_EQ(element_offset(view, i), walked_offset(view, i)) << "rank " << shape.rank() << ", element " << i;
  }
}

}  // namespace
}  // namespace cermet
