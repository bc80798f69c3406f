// Geometry of convolutions: what their attributes mean, for the definitions and for kernels.
#pragma once

#include <array>

#include "op/schema/infer.hpp"

namespace cermet {

/// Windows of a convolution over depth, height and width. Axes that x does not have come first, with a window of 1.
struct ConvGeometry {
  using Axes = std::array<std::int64_t, 3>;
  int axes = 0;                   ///< spatial axes of x, 1 to 3
  Axes kernel, stride, dilation;  ///< taps of a window, and steps of windows and of taps
  Axes before, after;             ///< zeros around x
  Axes output_padding{};          ///< conv_transpose: added to the end of y
  std::int64_t group = 1;         ///< groups of channels that are convolved by themselves
  bool channels_last = false;     ///< x and y are [N, spatial.., C] instead of [N, C, spatial..]
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// Elements of x that a window covers along an axis, the ones between taps included.
  std::int64_t extent(std::size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }
};

/// Of a call that was checked; `weight` has at least one spatial axis.
ConvGeometry conv_geometry(const Attributes& attributes, const Shape& weight);
ConvGeometry conv_geometry(const Problem& problem);

/// Batch, channels and three spatial axes of x or y, whatever the layout, with a stride for each: in this order.
struct ConvTensor {
  std::array<std::int64_t, 5> dims, strides;
  std::int64_t batch() const { return dims[0]; }
  std::int64_t channels() const { return dims[1]; }
  std::int64_t positions() const { return dims[2] * dims[3] * dims[4]; }
};
ConvTensor conv_tensor(const TensorView& view, bool channels_last);

/// Checks the ranks of x and weight, the attributes and the channels of both; `weight_inputs`: the axis of the weight
/// that counts input channels, which are those of one group where it is 1 and of all where it is 0. Returns the
/// geometry.
ConvGeometry check_convolution(const Problem& problem, int weight_inputs);
/// Axis of x and y that spatial axis `axis` of the three is.
int spatial_axis(const ConvGeometry& geometry, std::size_t axis);
/// Dimensions of y: those of x with `channels` channels and these sizes of the three spatial axes.
Dims conv_result(const Problem& problem, const ConvGeometry& geometry, const Dim& channels,
                 const std::array<Dim, 3>& spatial);

}  // namespace cermet
