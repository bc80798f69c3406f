// A convolution as the product of the matrix of its windows, for kernels of linear.
#pragma once

#include "op/schema/region.hpp"

namespace cermet::cuda {

/// A region that begins with a conv over nhwc tensors, of one group, as one around linear with the same operands and
/// results: x is [N, places.., taps * C], which is conv's own where windows are single pixels side by side, and the
/// weight [M, taps * C]. Residual and activation become nodes that follow.
Region conv_as_linear(const Region& region);

}  // namespace cermet::cuda
