// A product and what follows it in a region, as every family of CUDA kernels compiles and launches it.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/cuda/device/tile/epilogue.hpp"
#include "kernel/cuda/gemm/rows.hpp"
#include "kernel/cuda/prelude.hpp"
#include "kernel/kernel.hpp"
#include "op/scales.hpp"

namespace cermet::cuda {

/// Steps of a launch's operands along the leading axes of the result, merged into as few axes as walk all of them.
struct ProductRows {
  enum { X, Y, SECOND, SCALE, W, EXTRA, COUNT = EXTRA + epilogue::most_extras };
  RowAxes axes;
  std::array<AxisSteps, COUNT> steps{};  ///< by operand
  std::int64_t row(std::size_t operand) const { return steps[operand][static_cast<std::size_t>(axes.rank - 1)]; }
};

class Product {
 public:
  explicit Product(const Region& region, ProductLoops loops = {});
  /// Why no family with such loops takes what follows the anchor; nothing where nothing does.
  static Decline declines_after(const Region& region, ProductLoops loops = {});
  /// The same, also where something comes before the anchor.
  static Decline declines(const Region& region, ProductLoops loops = {});

  /// Indices of the product's own operands in a launch; -1 where there is none. The epilogue has all others, and scales
  /// unless they cover blocks.
  struct OperandIndices {
    int x = 0, w = 1, w_up = -1, offsets = -1, x_scale = -1, w_scale = -1;
  };
  OperandIndices at;
  /// A second result, which the epilogue's type has as its member Second.
  struct Second {
    std::size_t y;
    DType out;
  };
  std::size_t y = 0;  ///< place of the result
  std::optional<Second> second;
  ScaleGrid left, right;     ///< of x_scale and w_scale
  bool blocked = false;      ///< scales cover blocks of the reduction
  bool column_sums = false;  ///< the epilogue reads the sums of the weight's columns
  bool gated =
      false;  ///< the second half of w's rows takes part like a second weight, and a gate is computed after both
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
  /// Steps of all operands of a launch. `result`: the first result as rows.
  ProductRows rows(const LaunchArgs& args, const TensorView& result) const;

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
  int matrix_row_ = 0;  ///< of matmul: which axis of x is m, from the last
};

/// A kernel of products: make(region, config) gives what binds, prints and models one.
template <class Make>
Kernel product_kernel(const char* name, OpKind op, const char* summary, Make make) {
  using Made = decltype(make(std::declval<const Region&>(), Config()));
  return {
      .name = name,
      .op = op,
      .summary = summary,
      .fuses = true,
      .declines = [](const Region& region) { return Made::declines(region); },
      .bind = [make](const Region& region, const Config& config) -> Launcher {
        return [product = make(region, config)](const LaunchArgs& args) { product.launch(args); };
      },
      .workspace = [make](const Region& region, const Config& config, int) { return make(region, config).workspace(); },
      .programs = [make](const Region& region, const Config& config) { return make(region, config).programs(); },
      .configs = [make](const Region& region) { return make(region, Config()).configs(); },
      .cost = [make](const Region& region, const Config& config,
                     const DeviceLimits& limits) { return make(region, config).seconds(limits); }};
}

}  // namespace cermet::cuda
