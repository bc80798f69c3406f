// A layout of weights that a test can see: every matrix upside down, row N-1 first.
#pragma once

#include "op/schema/reference.hpp"
#include "runtime/weights.hpp"

namespace cermet {

inline std::int64_t reversed_bytes(const TensorType& matrix) { return matrix.bytes().constant(); }
inline void reverse_rows(const TensorView& matrix, std::byte* destination, ThreadPool&) {
  const TensorView to(destination, matrix.dtype, matrix.shape);
  const std::int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) store(to, (rows - 1 - r) * columns + c, load(matrix, r * columns + c));
}
inline const WeightLayout reversed{"reversed", reversed_bytes, reverse_rows};

}  // namespace cermet
