// What a GEMV computes before its product: nodes of a region whose last makes the rows of x (device/gemv/prologue.cuh,
// device/gemv/routed.cuh).
#pragma once

#include <array>

#include "kernel/cuda/device/gemv/routed.hpp"
#include "kernel/decline.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/region.hpp"

namespace cermet::cuda {

/// A normalization, a quantization, a normalization that quantizes, or the sorting of a mixture's rows; before the
/// sorting the gating of one token, after it a quantization.
struct GemvPrologue {
  explicit GemvPrologue(const Region& region);
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
  /// Whether the next launch starts only when those before this one have ended: experts' weights are loaded after the
  /// wait, when launches that only wait for their turn would be in the way; otherwise as was measured to be faster.
  bool delays_next(const Region& region) const;
  /// Of the device. `aligned`: all rows of x and of what is made of it are.
  gemv::Prologue config(const Region& region, bool stores_normed, bool aligned) const;
  /// How rows are quantized, alone.
  gemv::Prologue quantization() const;
  gemv::Routing routing() const;
};

/// Result of the region that `output` of a node is; -1 where it does not leave.
int result_of(const Region& region, std::size_t node, std::size_t output);

/// topk_gating before the sorting: where a region has its operands and results.
class GatingOperands {
 public:
  /// `node` of the region is topk_gating.
  GatingOperands(const Region& region, std::size_t node);
  gating::Params params(const LaunchArgs& args) const;
  std::int64_t choices() const { return choices_; }
  /// Operands and results of the region; -1 where one is not given, or does not leave.
  std::array<int, 2> operands() const { return {logits_, bias_}; }
  std::array<int, 2> results() const { return {weights_, ids_}; }

 private:
  int logits_, bias_, weights_, ids_;
  std::int64_t choices_;
  float scale_;
};

}  // namespace cermet::cuda
