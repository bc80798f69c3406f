// What a product's launcher knows of its region.
#pragma once

#include "base/checked.hpp"
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

/// What the loops of products give their epilogues: the scale of a row that is quantized before the product; and of one
/// weight (of each expert) both halves of its columns, where these are whole panels.
ProductLoops product_loops(const Region& region);

/// Bytes of float32 rows with this many elements, in front of other memory.
constexpr std::int64_t wide_bytes(std::int64_t elements) {
  return round_up(elements * static_cast<std::int64_t>(sizeof(float)), 64);
}

/// How the loops of a product cut its work where it has more than a few rows.
struct ProductCut {
  std::int64_t panel_bytes = usual_panel_bytes;  ///< of panels that several blocks of rows use in turn
  bool row_shares = true;                        ///< whether threads take shares of the rows where there are enough

  static constexpr std::int64_t usual_panel_bytes = 256 << 10;  ///< which stay in the second-level cache

  ProductCut() = default;
  /// "panels_kib=512 row_shares=0"; what is not named is as usual.
  explicit ProductCut(const Config& config);
  /// The configurations of a product; `shares`: of one whose rows may be shared out.
  static ConfigSpace space(const Region& region, bool shares);
};

struct ProductBinding {
  AnchorOperands operands;
  Prologue prologue;
  BoundTileProgram epilogue;
  NormAfter norm;
  std::size_t result;  ///< one that the product stores; all of them have its dimensions
  bool gated;          ///< the second half of the weight's rows is a second weight (gate_after)
  ProductCut cut;

  /// Who makes what comes before the product: a prologue, or the kernel itself.
  enum class Before : std::uint8_t { prologue, own };
  explicit ProductBinding(const Region& region, const Config& config = {}, Before before = Before::prologue);
  static bool is_gated(const Region& region) { return product_loops(region).gated && gate_after(region); }
  /// Kernel::cut of quantized and of grouped products: a gate runs faster where the next product packs its rows
  /// (docs/notes/gemm.md).
  static RegionCut gate_cut(const Region& region) {
    return is_gated(region) ? RegionCut::compared_at(static_cast<std::size_t>(region.anchor) + 1) : RegionCut();
  }
  /// Why the nodes after a product do not run in its store, or why there are some before it.
  static Decline declines(const Region& region);
  /// Why those after it do not, whatever comes before.
  static Decline declines_after(const Region& region);
  /// Why those, or the nodes before a product where its rows are packed, or a norm of the rows that it stores, do not
  /// run.
  static Decline declines_around(const Region& region);
  /// What such a gate takes more than that, where it is after sums of experts.
  static double gate_seconds(const Region& region, const DeviceLimits& limits);
  /// Leaves the first half of the weight's rows in `w` and returns the second, `second` bytes further on.
  static TensorView split_weight(TensorView& w, std::int64_t second);

 private:
  static Decline declines_store(const Region& region);
};

}  // namespace cermet::cpu
