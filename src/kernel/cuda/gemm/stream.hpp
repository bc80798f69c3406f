// Host half of matrix products of few rows on Hopper (device/gemm/stream.cuh).
#pragma once

#include "kernel/cuda/device/gemm/stream.hpp"
#include "kernel/cuda/gemm/general.hpp"
#include "kernel/cuda/gemv/gemv.hpp"
#include "kernel/cuda/gemv/rotation.hpp"

namespace cermet::cuda {

/// linear, dual_linear or scaled_mm of up to 64 rows, with what follows it, rope_and_cache (gemv/rotation.hpp) too.
class StreamProduct {
 public:
  static Decline declines(const Region& region);
  /// A region that it does not decline. The configuration: items of a block, slices of a stage, KiB of shared memory.
  explicit StreamProduct(const Region& region, const Config& config = {});
  std::vector<Config> configs() const;
  /// Modelled seconds at the symbols' maximum.
  double seconds(const DeviceLimits& limits) const;
  /// Those for up to 8, 16, 32 and 64 rows, as far as they are needed; those of the kernel that takes launches whose
  /// operands do not suit copies.
  std::vector<Program> programs() const;
  std::int64_t workspace() const { return general_ ? general_->workspace() : 0; }
  void launch(const LaunchArgs& args) const;

 private:
  /// Operands and strides of a launch that suit bulk copies; nothing where they do not.
  struct View;
  std::optional<View> view_of(const LaunchArgs& args) const;
  bool fits(const LaunchArgs& args, const View& view) const;
  gemm::StreamShape shape_of(int tokens, const Config& config) const;
  /// Rows of the weight that an item has, in so many rounds of all SMs: equal shares, or of pairs somewhat more.
  int item_rows(std::int64_t rounds) const;
  int equal_rows(std::int64_t rounds) const;
  std::int64_t usual_rounds() const;
  std::int64_t rounds_alone() const;  ///< without rope_and_cache
  std::int64_t items(const gemm::StreamShape& shape) const { return div_up(n_, shape.rows); }
  /// Of 128 bytes of k in a stage, where nothing else is asked for.
  int usual_slices(gemm::StreamShape shape) const;
  /// The configuration for a walk, and whether a shape is one of its or as good: there is one way for each product, all
  /// blocks with equal shares.
  Config walk_config() const;
  bool can_walk(const gemm::StreamShape& shape) const;
  Program program(const gemm::StreamShape& shape) const;
  gemm::StreamRotatedParams params(const LaunchArgs& args, const View& view, const gemm::StreamShape& shape) const;
  /// The result, of which rows of rotated queries are one.
  TensorView y(const LaunchArgs& args) const { return heads_ ? heads_->rows(args) : args.outputs[product_.y]; }
  const TensorView& x(const LaunchArgs& args) const { return *product_.given(args, product_.at.x); }
  const TensorView& w(const LaunchArgs& args) const { return *product_.given(args, product_.at.w); }

  std::optional<RotatedHeads> heads_;
  Product product_;
  rotation::Config rotation_;
  DType dtype_x_, dtype_w_;
  std::int64_t n_, k_, most_rows_;
  int weights_, multiprocessors_;
  bool constant_;
  std::vector<gemm::StreamShape> shapes_;  ///< fewest tokens first
  std::optional<GeneralProduct> general_;  ///< for other launches
  std::optional<Gemv> gemv_;               ///< the same with rope_and_cache after the product
};

}  // namespace cermet::cuda
