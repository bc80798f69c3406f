#include "op/spatial_view.hpp"

namespace cermet {

SpatialView spatial_view(const TensorView& view, bool channels_last) {
  const int rank = view.shape.rank(), channel = channels_last ? rank - 1 : 1;
  SpatialView result{view.shape[0], view.shape[channel], view.strides[0], view.strides[channel]};
  for (int a = 0; a < rank - 2; ++a) {
    const int axis = a + (channels_last ? 1 : 2);
    const auto to = static_cast<std::size_t>(3 - (rank - 2) + a);
    result.size[to] = view.shape[axis];
    result.stride[to] = view.strides[axis];
  }
  return result;
}

SpatialView dense_spatial_view(const TensorView& view, bool channels_last) {
  return spatial_view(TensorView(nullptr, view.dtype, view.shape), channels_last);
}

}  // namespace cermet
