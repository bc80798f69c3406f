// Configuration and parameters of quantize and dequantize.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/pointwise/tile.hpp"

namespace cermet::quantize {

struct Config {
  Tiling tiling = Tiling::general;
  DType x = {}, y = {};
  bool multiply = false;  ///< by the scale, not divide
  bool has_offset = false;
  DType offset = {};
  bool has_zero_point = false;  ///< of the type of y
  bool saturate = true;         ///< fp8
  bool grouped = false;         ///< scales and offsets go by groups of columns
  int width = 4;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("tiling", tiling), visit("x", x), visit("y", y), visit("multiply", multiply);
    visit("has_offset", has_offset), visit("offset", offset), visit("has_zero_point", has_zero_point);
    visit("saturate", saturate), visit("grouped", grouped), visit("width", width);
  }
};

struct Params {
  TileShape shape;
  TileOperand x, scale, offset, zero_point, y;
  uint32_t group;  ///< columns that share a scale, where they are grouped
};

}  // namespace cermet::quantize
