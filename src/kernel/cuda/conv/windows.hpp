// The windows of convolutions over nhwc tensors, as launches declare them.
#pragma once

#include "kernel/cuda/window_lines.hpp"
#include "op/conv.hpp"

namespace cermet::cuda {

/// The windows of an nhwc convolution, whose places items count one by one.
WindowLines conv_window_lines(const ConvGeometry& geometry, const ConvTensor& x, const ConvTensor& y);

}  // namespace cermet::cuda
