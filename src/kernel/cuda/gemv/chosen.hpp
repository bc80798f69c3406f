// topk_gating before the product of a token's experts: where a region has its operands and results
// (device/gemv/route.cuh).
#pragma once

#include <array>

#include "kernel/cuda/device/mixture/gating.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda {

class ChosenExperts {
 public:
  /// `node` of the region is the choice.
  ChosenExperts(const Region& region, std::size_t node);
  gating::Params params(const LaunchArgs& args) const;
  std::int64_t choices() const { return choices_; }
  /// Operands and results of the region, by places in a launch; -1 where one is not given, or nobody wants it.
  std::array<int, 2> operands() const { return {logits_, bias_}; }
  std::array<int, 2> results() const { return {weights_, ids_}; }

 private:
  int logits_, bias_, weights_, ids_;
  std::int64_t choices_;
  float scale_;
};

}  // namespace cermet::cuda
