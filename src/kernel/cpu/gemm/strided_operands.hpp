// Operands of a product that reshapes and transpositions before it make, read where they lie.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.hpp"

namespace cermet::cpu {

/// Of a product that reads matrices of any row and column step, one of which is an element.
class StridedOperands {
 public:
  /// Whether reshapes and transpositions alone come before the product, and something does.
  static bool make_all(const Region& region);
  /// Why operands of such a region are no matrices where they lie.
  static Decline declines(const Region& region);
  static bool serve(const Region& region) { return make_all(region) && !declines(region); }
  /// Of a region that they serve.
  explicit StridedOperands(const Region& region);

  /// The operand as the product has it: of its shape, over the memory of what the nodes read.
  TensorView operator()(const LaunchArgs& args, std::size_t input) const;

 private:
  /// Axis a of the result is axis `from` of what is read, or a part of it, `inner` elements of which follow. A
  /// dimension of 1 that is new has no axis.
  struct Axis {
    std::int64_t from = -1, inner = 1, size = 0;  ///< size: of a part; 0 where it is all of the axis
  };
  using Axes = std::vector<Axis>;
  /// How operand `input` of the anchor has the axes of what the nodes before it read; its reason where it does not.
  static Decline find(const Region& region, std::size_t input, std::size_t& operand, Axes& axes);

  struct Operand {
    std::size_t place = 0;  ///< in the region
    Axes axes;
  };
  std::vector<Operand> operands_;  ///< of the anchor
};

}  // namespace cermet::cpu
