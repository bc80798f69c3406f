// Results of a convolution over nhwc tensors as rows of channels.
#pragma once

#include <optional>

#include "kernel/cuda/device/tile/epilogue.hpp"
#include "kernel/cuda/gemm/product.hpp"
#include "kernel/cuda/window_lines.hpp"
#include "op/conv.hpp"

namespace cermet::cuda {

/// What kernels need of a launch whose results, and the operands of its epilogue, are rows that are evenly apart.
struct ConvRows {
  std::int64_t count = 0;
  epilogue::ResultRows to{};
  std::array<epilogue::Operand, epilogue::most_extras> extra{};
  bool vectors = false;  ///< runs of `run` neighbours from multiples of `run` on are aligned

  /// Nothing where rows are not evenly apart.
  static std::optional<ConvRows> of(const Product& product, const LaunchArgs& args, std::int64_t run);
};

/// The windows of an nhwc convolution, whose places items count one by one.
WindowLines conv_window_lines(const ConvGeometry& geometry, const ConvTensor& x, const ConvTensor& y);

}  // namespace cermet::cuda
