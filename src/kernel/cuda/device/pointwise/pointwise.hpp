// Configuration and parameters of the elementwise operators.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/pointwise/tile.hpp"

namespace cermet::pointwise {

struct Config {
  Tiling tiling = Tiling::general;
  DType in = {}, out = {};
  int width = 8;
  bool binary = false;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("tiling", tiling), visit("in", in), visit("out", out), visit("width", width), visit("binary", binary);
  }
};

struct Params {
  TileShape shape;
  TileOperand a, b, y;
  float parameters[2];
  double wide_parameters[2];  ///< the same, for f64
};

}  // namespace cermet::pointwise
