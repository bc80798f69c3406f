// A product and what follows it in a region, as every family of CUDA kernels compiles and launches it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernel/cuda/device/tile/epilogue.hpp"
#include "kernel/cuda/gemm/rows.hpp"
#include "kernel/cuda/prelude.hpp"
#include "kernel/kernel.hpp"
#include "op/scales.hpp"

namespace cermet::cuda {

inline std::int64_t bytes_of(DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); }

class Product {
 public:
  explicit Product(const Region& region, ProductLoops loops = {});
  /// Why no family with such loops takes what follows the anchor; nothing where nothing does.
  static Decline declines_after(const Region& region, ProductLoops loops = {});
  /// The same, also where something comes before the anchor.
  static Decline declines(const Region& region, ProductLoops loops = {});

  /// Places of the product's own operands in a launch; -1 where there is none. The epilogue has all others, and scales
  /// unless they cover blocks.
  struct Places {
    int x = 0, w = 1, w_up = -1, offsets = -1, x_scale = -1, w_scale = -1;
  };
  Places at;
  /// A second result, which the epilogue's type has as its member Also.
  struct Also {
    std::size_t y;
    DType out;
  };
  std::size_t y = 0;  ///< place of the result
  std::optional<Also> also;
  ScaleGrid left, right;     ///< of x_scale and w_scale
  bool blocked = false;      ///< scales cover blocks of the reduction
  bool column_sums = false;  ///< the epilogue reads the sums of the weight's columns
  bool gated =
      false;  ///< the second half of w's rows takes part like a second weight, and a gate is computed behind both
  DType out = DType::f32;  ///< of the result

  /// For programs. Made when it is wanted: cost models ask for many products that are never compiled.
  GeneratedType epilogue() const { return epilogue_type(program_, extras_, column_sums); }
  const TensorView* given(const LaunchArgs& args, int place) const;
  /// The second weight: an operand, or the second half of w's rows; data is null where there is none.
  TensorView second_weight(const LaunchArgs& args) const;
  bool has_two_weights() const { return at.w_up >= 0 || gated; }
  std::span<const EpilogueExtra> extras() const { return extras_; }
  /// Operand i of the epilogue.
  const TensorView& extra(const LaunchArgs& args, std::size_t i) const { return args.inputs[operands_[i].place]; }
  /// Its steps along the `leads` leading axes of the result.
  AxisSteps extra_steps(const LaunchArgs& args, std::size_t i, int leads) const;
  /// Where it is; `row` is left to the caller.
  epilogue::Operand operand(const LaunchArgs& args, std::size_t i) const;

 private:
  struct Operand {
    std::size_t place;
    bool is_scale, grouped;  ///< a column's scale; with the groups of a grouped product in front
    std::int64_t shift;      ///< columns
  };
  TileProgram program_;  ///< what follows the sums
  std::vector<EpilogueExtra> extras_;
  std::vector<Operand> operands_;
  bool grouped_ = false;
};

}  // namespace cermet::cuda
