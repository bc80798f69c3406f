// Whether strided tensors share memory, judged by their elements: views that interleave in one allocation do not.
#pragma once

#include "base/tensor.hpp"

namespace cermet::api {

/// Whether some byte belongs to an element of both. Strides are not negative. True also where the answer would take too
/// long. Allocates nothing.
bool share_memory(const TensorView& a, const TensorView& b);

/// Whether two elements of a tensor with these strides, none negative, are in one place. True also where the answer
/// would take too long.
bool overlaps_itself(const Shape& shape, const Shape& strides);

}  // namespace cermet::api
