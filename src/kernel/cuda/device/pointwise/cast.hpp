// Configuration and parameters of cast.
#pragma once

#include "format/fp8_variants.hpp"
#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/pointwise/tile.hpp"

namespace cermet::format {

constexpr const char* name_of(Rounding rounding) {
  switch (rounding) {
    case Rounding::zero: return "cermet::format::Rounding::zero";
    case Rounding::nearest: return "cermet::format::Rounding::nearest";
    case Rounding::up: return "cermet::format::Rounding::up";
  }
  return "";
}

}  // namespace cermet::format

namespace cermet::cast {

using format::Rounding;

struct Config {
  Tiling tiling = Tiling::general;
  DType x = {}, y = {};
  Rounding rounding = Rounding::zero;  ///< from floating to integer types, and to f8_e8m0
  int width = 4;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("tiling", tiling), visit("x", x), visit("y", y), visit("rounding", rounding), visit("width", width);
  }
};

struct Params {
  TileShape shape;
  TileOperand x, y;
};

}  // namespace cermet::cast
