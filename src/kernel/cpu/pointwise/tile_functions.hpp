// The arithmetic of elementwise operators over values in L1: pointwise kernels and tile programs are made of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "op/schema/problem.hpp"

namespace cermet::cpu {

/// Rows of float32 or int32 to read: element (r, c) is data[r * row_step + c * column_step]. column_step is 1, or 0
/// where data points at `repeated` equal values: as many as the widest vector has.
struct TileOperand {
  static constexpr std::size_t repeated = 16;
  const float* data;
  std::size_t row_step, column_step;
};

/// Rows to write; they may be those of an operand.
struct TileTarget {
  float* data;
  std::size_t row_step, rows, columns;
};

/// Computes a tile from as many operands as the function has. Integers lie in the memory of float32.
using TileFunction = void (*)(const TileOperand* operands, const TileTarget& y, const float* parameters);

/// The functions of an elementwise operator for the active instruction set; null where the operator does not take the
/// type.
struct PointwiseFunctions {
  TileFunction real = nullptr;
  TileFunction integer = nullptr;  ///< on int32, which wraps
  TileFunction of_sum = nullptr;   ///< of a + b, rounded as add rounds; null but for activations, which follow biases
  void (*wide)(const std::int64_t* a, const std::int64_t* b, std::int64_t* y, std::size_t n) = nullptr;
};
PointwiseFunctions pointwise_functions(OpKind kind);

}  // namespace cermet::cpu
