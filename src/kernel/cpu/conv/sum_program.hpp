// Tile programs that a convolution computes on its sums in registers.
#pragma once

#include <array>
#include <optional>

#include "kernel/cpu/tile_program.hpp"

namespace cermet::cpu {

/// A tile program of the form f(sum + bias + residual), all of float32, where f limits its operand or is any other
/// function of one operand.
struct SumProgram {
  std::optional<std::size_t> bias, residual;  ///< operands of the region
  float low, high;
  TileFunction function = nullptr;  ///< in place of bounds, for the active instruction set
  std::array<float, 2> parameters{};

  /// Nothing for a program of another form.
  static std::optional<SumProgram> of(const TileProgram& program);
};

}  // namespace cermet::cpu
