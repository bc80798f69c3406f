// Host half of GEMVs, matrix products of few rows (device/gemv): what is compiled for a problem, and how a launch
// divides it.
#pragma once

#include <string>
#include <vector>

#include "kernel/cuda/device/gemv/params.hpp"
#include "kernel/cuda/gemm/product.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

/// linear, dual_linear, scaled_mm or grouped_linear with few rows; linear and dual_linear may have a normalization before them.
class FewRows {
 public:
  /// Without a configuration weights stream through shared memory where the device and their rows allow it.
  explicit FewRows(const Region& region, const Config& config = {});

  static Decline declines(const Region& region);
  /// The same for regions with a normalization before the product, which alone reads it. Its result is float32, so that nothing is rounded in between.
  static Decline declines_norm(const Region& region);
  static std::vector<Config> configs(const Region& region);
  /// Modelled seconds at the symbols' maximum.
  double seconds(const Region& region, const DeviceLimits& limits) const;
  const std::vector<Program>& programs() const { return programs_; }
  void launch(const LaunchArgs& args) const;

 private:
  static std::string norm_config(const Problem& norm);
  void set_weights(const LaunchArgs& args, gemv::Params& p) const;
  void set_scales(const LaunchArgs& args, gemv::Params& p) const;
  std::string row_task(const Problem& problem, const Problem* norm) const;

  Product product_;
  int norm_weight_ = -1, delta_ = -1;  ///< of the normalization before the product, which reads x; the second operand of its sum
  int sum_ = -1;                       ///< the result that holds the sum
  float epsilon_ = 0, norm_offset_ = 0;
  DType offsets_ = DType::i32;
  std::int64_t row_bytes_;  ///< of a weight
  bool constant_;           ///< whether the weights are known beforehand
  bool stream_;
  std::vector<Program> programs_;
};

}  // namespace cermet::cuda
