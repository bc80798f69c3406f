// What a GEMV computes before its product: nodes of a region whose last makes the rows of x.
#pragma once

#include "kernel/decline.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/region.hpp"

namespace cermet::cuda {

/// A normalization, a quantization, a normalization that quantizes, or the sorting of a mixture's rows; before the
/// sorting the choice of one token's experts, after it a quantization.
struct Front {
  explicit Front(const Region& region);
  /// Why the nodes before the anchor are none of those, or what they give is read elsewhere.
  static Decline declines(const Region& region);

  const Problem *norm = nullptr, *quantize = nullptr, *permute = nullptr,
                *gating = nullptr;  ///< norm and quantize may be one node
  std::size_t norm_node = 0, quantize_node = 0, permute_node = 0, gating_node = 0;

  bool is_empty() const { return norm == nullptr && quantize == nullptr && permute == nullptr; }
  bool adds() const {
    return norm != nullptr && (norm->op->kind == OpKind::add_rms_norm || norm->op->kind == OpKind::add_rms_norm_quant);
  }
  std::size_t norm_weight() const { return adds() ? 2 : 1; }
  /// Operand of the region that the rows are made of.
  std::size_t x(const Region& region) const;
  /// Its element type.
  DType x_type() const;
  /// What the product reads a normalized row as: the type of an edge that is strict, otherwise f32.
  DType rounded(const Region& region) const;
  /// Whether the launch behind starts late: behind fp8 unless the weight is long, and where an int8 row is made inside
  /// at sizes where that made the product faster than one with a kernel before it.
  bool lets_next_wait(const Region& region) const;
  /// Whether it starts at once behind an int8 row that another launch makes, which is late otherwise: where the weight
  /// is long.
  bool lets_next_start(const Region& region) const;
  /// Fields of gemv::Prologue that say how rows are quantized.
  std::string quantization() const;
};

/// Result of the region that `output` of a node is; -1 where it does not leave.
int result_of(const Region& region, std::size_t node, std::size_t output);

}  // namespace cermet::cuda
