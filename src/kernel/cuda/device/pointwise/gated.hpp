// Configuration and parameters of gated activations.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/pointwise/tile.hpp"

namespace cermet::gated {

enum class Function : uint8_t { silu, gelu, gelu_tanh, gelu_quick, clamped };
constexpr const char* name_of(Function function) {
  switch (function) {
    case Function::silu: return "cermet::gated::Function::silu";
    case Function::gelu: return "cermet::gated::Function::gelu";
    case Function::gelu_tanh: return "cermet::gated::Function::gelu_tanh";
    case Function::gelu_quick: return "cermet::gated::Function::gelu_quick";
    case Function::clamped: return "cermet::gated::Function::clamped";
  }
  return "";
}

/// How the two halves of a row lie.
struct Layout {
  bool gate_first = true, interleaved = false;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("gate_first", gate_first), visit("interleaved", interleaved);
  }
};

struct Config {
  Tiling tiling = Tiling::general;
  Function function = Function::silu;
  Layout layout = {};
  DType x = {}, y = {};
  int width = 8;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("tiling", tiling), visit("function", function), visit("layout", layout), visit("x", x), visit("y", y);
    visit("width", width);
  }
};

struct Params {
  TileShape shape;  ///< of the result
  RowOperand x;     ///< [.., 2 * length]
  TileOperand y;
  float alpha, limit, up_offset;  ///< of the clamped SwiGLU
};

}  // namespace cermet::gated
