// Products of quantized operands: what is known when one is bound.
#pragma once

#include <algorithm>

#include "kernel/cpu/gemm/binding.hpp"
#include "kernel/cpu/gemm/panels.hpp"
#include "kernel/cpu/gemm/row_form.hpp"
#include "op/scales.hpp"

namespace cermet::cpu {

struct ScaledPlan {
  ProductBinding binding;
  std::size_t left_scale, right_scale;  ///< operands of the product
  ScaleGrid left, right;
  RowForm form = RowForm::wide;          ///< units: int8 dot products; chunks: int8 products of tiles
  const WeightLayout* repack = nullptr;  ///< of a weight that is packed in every run
  bool makes_scales = false;             ///< of rows that are quantized before the product
  std::size_t scale_input = 0;  ///< of the epilogue: a row's scale that is made, unless sums are scaled on the way

  /// Panels of the result: those of a gate's first half.
  std::int64_t panels(std::int64_t columns) const { return panel_count(columns) / (binding.gated ? 2 : 1); }
  /// Whether scales cover blocks of the reduction, so that the sums are scaled on the way. Else the epilogue scales
  /// them.
  bool blocked() const { return std::max(left.blocks, right.blocks) > 1; }
};

}  // namespace cermet::cpu
