// What a tile program needs beside elementwise operators: conversions, stores, and steps that are worth taking
// together.
#pragma once

#include "base/tensor.hpp"
#include "kernel/cpu/convert.hpp"
#include "kernel/cpu/pointwise/tile_functions.hpp"

namespace cermet::cpu {

/// Where a tile is in the results: rows as Rows counts them, and columns.
struct TileRange {
  std::int64_t row = 0, rows = 1, column = 0, columns = 0;
  std::int64_t group = 0;  ///< of a grouped product
};

/// Stores a tile, or the sum of two, rounded.
using TileStore = void (*)(const TileOperand* operands, const Rows& y, const TileRange& range);

/// Types of operands that tile programs read and of results that they store: what float32 holds, i32, and of operands
/// i64, rounded.
inline constexpr DTypeSet tile_types = dtypes::real | DTypeSet{DType::f8_e4m3, DType::f8_e5m2, DType::i8, DType::u8,
                                                               DType::boolean, DType::i32,     DType::i64};

/// For the active instruction set.
struct TileSteps {
  TileFunction to_real;                 ///< of integers
  TileFunction scale_integers;          ///< c * (b * real(a)) of a, b, c
  TileFunction scale;                   ///< c * (b * a)
  TileFunction subtract_product;        ///< a - b * c, integers
  TileFunction choose;                  ///< b where a is not 0, else c
  TileFunction scale_shifted_integers;  ///< e * (d * real(a - b * c)) of a, b, c, d, e
  /// d * (q - c) of x, a, b, c, d, where q = round(x / a) + b, saturated to int8 and 0 for NaN: what is left of x.
  TileFunction requantize[2][2];  ///< [x is the sum of the first two operands][c is an integer]
  /// i8 results: round(x / a) + b of x, a, b, and the same of a sum.
  TileStore store_quantized, store_quantized_sum;
};
TileSteps tile_steps();
/// To float32 and back; null for types that do not round float32, or by which a step cannot be rounded.
TileFunction tile_round(DType dtype);
/// A row of any of tile_types as float32, or a copy of i32.
RunConverter tile_reader(DType dtype);
/// Null where float32 is not stored as that type. i32 stores integers. `sum`: of two tiles of float32.
TileStore tile_store(DType dtype, bool sum);

}  // namespace cermet::cpu
