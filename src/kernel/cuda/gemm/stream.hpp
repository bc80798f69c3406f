// Host half of matrix products of few rows on Hopper (device/gemm/stream.cuh).
#pragma once

#include "kernel/cuda/device/gemm/stream.hpp"
#include "kernel/cuda/gemm/general.hpp"

namespace cermet::cuda {

/// linear, dual_linear or scaled_mm of up to 64 rows, with what follows it.
class StreamProduct {
 public:
  static Decline declines(const Region& region);
  /// A region that it does not decline. The configuration: items of a block, slices of a stage, KiB of shared memory.
  explicit StreamProduct(const Region& region, const Config& config = {});
  std::vector<Config> configs() const;
  /// Modelled seconds at the symbols' maximum.
  double seconds(const DeviceLimits& limits) const;
  /// Those for up to 8, 16, 32 and 64 rows, as far as they are needed; those of the general GEMM.
  std::vector<Program> programs() const;
  std::int64_t workspace() const { return general_.workspace(); }
  void launch(const LaunchArgs& args) const;

 private:
  /// Operands and strides of a launch that suit bulk copies; nothing where they do not.
  struct View;
  std::optional<View> view_of(const LaunchArgs& args) const;
  bool fits(const LaunchArgs& args, const View& view) const;
  gemm::StreamShape shape_of(int tokens, const Config& config) const;
  /// Of 128 bytes of k in a stage, where nothing else is asked for.
  int usual_slices(gemm::StreamShape shape) const;
  /// The configuration for a walk, and whether a shape is one of its or as good: there is one way for each product, all blocks with equal shares.
  Config walk_config() const;
  bool can_walk(const gemm::StreamShape& shape) const;
  Program program(const gemm::StreamShape& shape) const;
  gemm::StreamParams params(const LaunchArgs& args, const View& view, const gemm::StreamShape& shape) const;
  /// Says what the items of the last launch touch.
  void declare(const LaunchArgs& args, const View& view, const gemm::StreamShape& shape) const;
  const TensorView& x(const LaunchArgs& args) const { return *product_.given(args, product_.at.x); }
  const TensorView& w(const LaunchArgs& args) const { return *product_.given(args, product_.at.w); }

  Product product_;
  DType dtype_x_, dtype_w_;
  std::int64_t n_, k_, most_rows_;
  int weights_, multiprocessors_;
  bool constant_;
  std::vector<gemm::StreamShape> shapes_;  ///< fewest tokens first
  GeneralProduct general_;
};

}  // namespace cermet::cuda
