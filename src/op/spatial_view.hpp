// Samples with channels and up to three spatial axes, in either layout.
#pragma once

#include <array>

#include "base/tensor.hpp"

namespace cermet {

/// Sizes, strides or positions along the spatial axes, outermost first. Operands with fewer than three have leading
/// axes of one element.
using Spatial = std::array<std::int64_t, 3>;

/// A view [N, C, spatial..] or [N, spatial.., C] with three spatial axes. Strides in elements.
struct SpatialView {
  std::int64_t batch = 0, channels = 0, batch_stride = 0, channel_stride = 0;
  Spatial size{1, 1, 1}, stride{0, 0, 0};

  std::int64_t positions() const { return size[0] * size[1] * size[2]; }
  std::int64_t offset(std::int64_t n, std::int64_t c, const Spatial& at) const {
    return n * batch_stride + c * channel_stride + at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2];
  }
};
SpatialView spatial_view(const TensorView& view, bool channels_last);
/// The same of a dense view of this type and shape, for load() and store(), which see to the strides themselves.
SpatialView dense_spatial_view(const TensorView& view, bool channels_last);

/// Position of an index below size[0] * size[1] * size[2].
inline Spatial position_of(const Spatial& size, std::int64_t index) {
  return {index / (size[1] * size[2]), index / size[2] % size[1], index % size[2]};
}

}  // namespace cermet
