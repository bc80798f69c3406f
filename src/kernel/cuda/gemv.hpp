// Host half of GEMVs, matrix products of few rows (device/gemv): what is compiled for a problem, and how a launch
// divides it.
#pragma once

#include <string>
#include <vector>

#include "kernel/cuda/device/gemv/params.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/scales.hpp"

namespace cermet::cuda {

/// A problem of linear, dual_linear, scaled_mm or grouped_linear with few rows.
class FewRows {
 public:
  explicit FewRows(const Problem& problem);

  static Decline declines(const Problem& problem);
  /// Normalisations of one row that are computed on the way: of float32 results, so that nothing is rounded in between.
  static bool takes_prologue(const Problem& prologue);
  const std::vector<Program>& programs() const { return programs_; }
  void launch(const LaunchArgs& args) const;

 private:
  /// Places of operands in the operator's schema; -1 where it has none.
  struct Operands {
    int x = 0, w = 1, w_up = -1, bias = -1, bias_up = -1, offsets = -1, x_scale = -1, w_scale = -1, zero_point = -1, residual = -1, out_scale = -1;
  };
  static Operands operands_of(OpKind op);
  const TensorView* given(const LaunchArgs& args, int operand) const;
  std::size_t place_of(int operand) const;
  std::string prologue_config(const Problem& prologue) const;
  void set_weights(const LaunchArgs& args, gemv::Params& p) const;
  void set_scales(const LaunchArgs& args, gemv::Params& p) const;
  std::string row_task(const Problem& problem, bool stream) const;

  OpKind op_;
  Operands operands_;
  ScaleGrid left_, right_;
  std::int64_t row_bytes_;           ///< of a weight
  std::size_t prologue_inputs_ = 0;  ///< operands of the normalisation before the product; 0 without one
  bool adds_ = false;                ///< it adds two operands before
  float epsilon_ = 0, norm_offset_ = 0;
  bool constant_;  ///< whether the weights are known beforehand
  bool stream_;
  std::vector<Program> programs_;
};

}  // namespace cermet::cuda
