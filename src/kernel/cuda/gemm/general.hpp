// Host half of the general GEMM (device/gemm/general.cuh): it serves every operator of linear algebra, and other
// kernels where a launch's addresses or strides do not suit them.
#pragma once

#include "kernel/cuda/device/gemm/general.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/scales.hpp"

namespace cermet::cuda {

/// A problem of linear, matmul, dual_linear, scaled_mm or grouped_linear as the general GEMM sees it.
class GeneralProduct {
 public:
  /// Which programs to compile: any tiles on the CUDA cores; their small tiles alone, for kernels that rarely come here; or tiles on the tensor cores, and the
  /// small ones for launches whose rows are not aligned.
  enum class Programs { all, small, tensor };
  /// Without a configuration, launches take large tiles where there are enough of them; with one, its tiles.
  explicit GeneralProduct(const Problem& problem, Programs programs = Programs::all, const Config& config = {});
  /// Sizes of tiles; the first leaves the choice to launches.
  static std::vector<Config> configs();
  /// Modelled seconds at the symbols' maximum.
  double seconds(const DeviceLimits& limits) const;
  /// Why the tensor cores do not take a problem.
  static Decline declines_tensor(const Problem& problem);
  std::vector<Program> programs() const;
  /// `first_program`: where programs() begin in the kernel's list.
  void launch(const LaunchArgs& args, std::size_t first_program = 0) const;

 private:
  /// Places of operands in the operator's schema; -1 where it has none.
  struct Operands {
    int x = 0, w = 1, w_up = -1, bias = -1, bias_up = -1, offsets = -1, x_scale = -1, w_scale = -1, zero_point = -1, residual = -1, out_scale = -1;
  };
  static Operands operands_of(OpKind op);
  gemm::GeneralParams params(const LaunchArgs& args) const;
  void set_rows(const LaunchArgs& args, gemm::GeneralParams& p) const;
  void set_scales(const LaunchArgs& args, gemm::GeneralParams& p) const;
  bool has_large() const;
  Program program(bool tensor, int tile) const;

  OpKind op_;
  Operands operands_;
  bool transpose_a_ = false, transpose_b_ = true;  ///< a is [.., k, m]; b is [.., n, k]
  bool zero_point_ = false;
  Programs kinds_;
  int stages_ = 2;  ///< of the tensor cores' operands
  ScaleGrid left_, right_;
  DType a_, b_, out_, bias_ = DType::f32, bias_up_ = DType::f32, residual_ = DType::f32, offsets_ = DType::i32;
  std::string activation_ = "identity";
  double most_tiles_ = 0;  ///< of the large program, at the symbols' maximum
  std::int64_t most_rows_ = 1, most_columns_ = 0, most_k_ = 0, groups_ = 0;
  double most_bytes_ = 0;  ///< that it moves
  int multiprocessors_ = 1;
  std::int64_t tile_ = 0;  ///< 0: by the launch
};

}  // namespace cermet::cuda
