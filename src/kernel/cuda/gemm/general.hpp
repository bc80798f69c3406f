// Host half of the general GEMM (device/gemm/general.cuh): it serves every operator of linear algebra, and other
// kernels where a launch's addresses or strides do not suit them.
#pragma once

#include "kernel/cuda/device/gemm/general.hpp"
#include "kernel/cuda/gemm/product.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

/// A region around linear, matmul, dual_linear, scaled_mm or grouped_linear as the general GEMM sees it.
class GeneralProduct {
 public:
  /// Which programs to compile: any tiles on the CUDA cores; their small tiles alone, for kernels that rarely come
  /// here; or tiles on the tensor cores, and the small ones for launches whose rows are not aligned.
  enum class Programs { all, small, tensor };
  /// Without a configuration, launches take large tiles where there are enough of them; with one, its tiles.
  explicit GeneralProduct(const Region& region, Programs programs = Programs::all, const Config& config = {});
  /// Sizes of tiles; the first leaves the choice to launches.
  static std::vector<Config> configs();
  /// Modelled seconds at the symbols' maximum.
  double seconds(const DeviceLimits& limits) const;
  /// Why the CUDA cores do not take a region, and why the tensor cores do not.
  static Decline declines(const Region& region);
  static Decline declines_tensor(const Region& region);
  /// What this and the products of Hopper give what follows.
  static constexpr ProductLoops loops{.gated = true, .results = 2};
  std::vector<Program> programs() const;
  std::int64_t workspace() const;
  /// `first_program`: where programs() begin in the kernel's list.
  void launch(const LaunchArgs& args, std::size_t first_program = 0) const;
  /// Those of the columns' sums, where the epilogue reads them: at the end of the list.
  void launch_sums(const LaunchArgs& args, std::size_t first_program) const;

 private:
  gemm::GeneralParams params(const LaunchArgs& args) const;
  void set_rows(const LaunchArgs& args, gemm::GeneralParams& p) const;
  void set_scales(const LaunchArgs& args, gemm::GeneralParams& p) const;
  void set_vectors(gemm::GeneralParams& p, bool dual) const;
  bool has_large() const;
  /// Columns of a tile: of products of two weights, half of it.
  std::int64_t tile_columns(int tile) const { return product_.has_two_weights() ? tile / 2 : tile; }
  Program program(bool tensor, int tile) const;

  OpKind op_;
  Product product_;
  bool transpose_a_ = false, transpose_b_ = true;  ///< a is [.., k, m]; b is [.., n, k]
  Programs kinds_;
  int stages_ = 2;  ///< of the tensor cores' operands
  DType a_, b_, offsets_ = {};
  double most_tiles_ = 0;  ///< of the large program, at the symbols' maximum
  std::int64_t most_rows_ = 1, most_columns_ = 0, most_k_ = 0, groups_ = 0;
  double most_bytes_ = 0;  ///< that it moves
  int multiprocessors_ = 1;
  std::int64_t tile_ = 0;  ///< 0: by the launch
};

}  // namespace cermet::cuda
