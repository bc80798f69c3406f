// Rows of coordinates as tasks take them.
#pragma once

#include "base/tensor.hpp"
#include "kernel/cuda/device/movement/coordinates.hpp"

namespace cermet::cuda {

/// Coordinate j is along axis first + j of x; strides are divided by `unit`.
inline Coordinates make_coordinates(const TensorView& x, int first, const TensorView& indices, std::int64_t unit = 1) {
  Coordinates c{.indices = indices.data,
                .wide = indices.dtype == DType::i64,
                .count = static_cast<std::int32_t>(indices.shape.back()),
                .size = {},
                .stride = {}};
  for (int j = 0; j < c.count; ++j) {
    c.size[j] = x.shape[first + j];
    c.stride[j] = x.strides[first + j] / unit;
  }
  return c;
}

}  // namespace cermet::cuda
