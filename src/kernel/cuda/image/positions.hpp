// Views as tasks over samples, channels and positions take them.
#pragma once

#include "kernel/cuda/device/image/positions.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "op/pool_window.hpp"

namespace cermet::cuda {

inline SpatialTensor spatial_tensor(const SpatialView& view) {
  SpatialTensor tensor{view.batch_stride, view.channel_stride, {}, {}};
  for (std::size_t a = 0; a < 3; ++a) {
    tensor.stride[a] = view.stride[a];
    tensor.size[a] = static_cast<std::int32_t>(view.size[a]);
  }
  return tensor;
}

/// Positions in the order of memory. `run` neighbouring channels count as one where channels are last.
inline PositionOrder position_order(const SpatialView& view, bool channels_last, std::int64_t run = 1) {
  const std::int64_t c = view.channels / run;
  const std::array<std::int64_t, 5> first{view.batch, c, view.size[0], view.size[1], view.size[2]},
      last{view.batch, view.size[0], view.size[1], view.size[2], c};
  const auto& sizes = channels_last ? last : first;
  PositionOrder order{view.batch * c * view.positions(), 0, channels_last, {}, {}};
  order.wide = order.count >= std::int64_t{1} << 31;
  for (std::size_t a = 0; a < 5; ++a) {
    order.size[a] = sizes[a];
    order.by[a] = make_divisor(sizes[a]);
  }
  return order;
}

/// Elements of 16 bytes at most that one access may take along the channels, which are last: the sizes, strides and
/// addresses of both allow it.
inline std::int64_t channel_run(const TensorView& x, const TensorView& y) {
  std::int64_t run = 16 / byte_size(x.dtype);
  for (const TensorView* view : {&x, &y}) {
    for (int a = 0; a + 1 < view->shape.rank(); ++a)
      while (run > 1 && view->strides[a] % run != 0) run /= 2;
    while (run > 1 &&
           (view->shape.back() % run != 0 ||
            reinterpret_cast<std::uintptr_t>(view->data) % (static_cast<std::size_t>(run) * size_of(view->dtype)) != 0))
      run /= 2;
  }
  return run;
}

}  // namespace cermet::cuda
