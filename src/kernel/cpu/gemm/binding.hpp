// What a product's launcher knows of its region.
#pragma once

#include "kernel/cpu/gemm/norm_after.hpp"
#include "kernel/cpu/gemm/prologue.hpp"
#include "kernel/cpu/tile_program.hpp"

namespace cermet::cpu {

/// Where a launch finds the operands of its region's anchor.
class AnchorOperands {
 public:
  explicit AnchorOperands(const Region& region);
  /// Operand `input` of the anchor; a view that is not present where it is not given.
  TensorView operator()(const LaunchArgs& args, std::size_t input) const {
    return input < places_.size() && args.has(places_[input]) ? args.inputs[places_[input]] : TensorView();
  }

 private:
  std::vector<std::size_t> places_;
};

/// What the loops of products give their epilogues: the scale of a row that is quantized before the product.
inline constexpr ProductLoops product_loops{.row_scale = true};

struct ProductBinding {
  AnchorOperands operands;
  Prologue prologue;
  BoundTileProgram epilogue;
  NormAfter norm;
  std::size_t result;  ///< one that the product stores; all of them have its dimensions

  explicit ProductBinding(const Region& region);
  /// Why the nodes after a product do not run in its store.
  static Decline declines(const Region& region);
  /// Why those, or the nodes before a product where its rows are packed, or a norm of the rows that it stores, do not run.
  static Decline declines_around(const Region& region);
};

}  // namespace cermet::cpu
