// What a tile program needs beside elementwise operators: conversions, stores, and steps that are worth taking together.
#pragma once

#include "base/tensor.hpp"
#include "kernel/cpu/pointwise/tile_functions.hpp"

namespace cermet::cpu {

/// Where a tile is in the results: rows as Rows counts them, and columns.
struct TilePlace {
  std::int64_t row = 0, rows = 1, column = 0, columns = 0;
  std::int64_t group = 0;  ///< of a grouped product
};

/// Stores a tile, or the sum of two, rounded.
using TileStore = void (*)(const TileOperand* operands, const Rows& y, const TilePlace& place);

/// For the active instruction set.
struct TileSteps {
  TileFunction to_real;  ///< of integers
  TileFunction round_bf16, round_f16;
  TileFunction scale_integers;    ///< c * (b * real(a)) of a, b, c
  TileFunction scale;             ///< c * (b * a)
  TileFunction subtract_product;  ///< a - b * c, integers
};
TileSteps tile_steps();
/// f32, bf16, f16; i8: to nearest even, saturated, 0 for NaN; i32: of integers. `sum`: of two tiles, of float32.
TileStore tile_store(DType dtype, bool sum);

}  // namespace cermet::cpu
