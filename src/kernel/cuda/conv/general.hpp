// Host half of the general convolution (device/conv/general.cuh), which other kernels launch where addresses or strides
// do not suit them.
#pragma once

#include "kernel/cuda/device/conv/general.hpp"
#include "kernel/cuda/gemm/product.hpp"
#include "kernel/cuda/task.hpp"
#include "op/conv.hpp"

namespace cermet::cuda {

/// What multiplies x before a convolution: one number for each channel of a sample.
struct ConvGate {
  const void* data;
  std::int64_t batch, channel;  ///< elements from one to the next
};

/// A region around conv or conv_transpose as the general convolution sees it.
class GeneralConv {
 public:
  static Decline declines(const Region& region);
  explicit GeneralConv(const Region& region, bool gated = false);
  Program program() const;
  /// `weight`: how it lies in memory, where it does not as the operator has it.
  void launch(const LaunchArgs& args, std::size_t program = 0, const conv::WeightSteps* weight = nullptr,
              const ConvGate* gate = nullptr) const;

 private:
  conv::Steps steps_of_extra(const LaunchArgs& args, std::size_t i) const;

  Product product_;
  ConvGeometry geometry_;
  bool transposed_, gated_;
  DType type_;
  std::optional<std::size_t> bias_;  ///< operand of the region
  std::vector<std::size_t> extras_;  ///< operands of the region that the epilogue reads
};

/// Of a region that the general convolution takes: why a second result is left to another launch.
Decline declines_second_result(const Region& region);
/// Kernel::cut of conv.implicit and of the general convolution, where that takes the same: separate for two results.
RegionCut second_result_cut(const Region& region);

}  // namespace cermet::cuda
