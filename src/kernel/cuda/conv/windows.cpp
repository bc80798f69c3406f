#include "kernel/cuda/conv/windows.hpp"

namespace cermet::cuda {

WindowLines conv_window_lines(const ConvGeometry& geometry, const ConvTensor& x, const ConvTensor& y) {
  return {.planes = x.batch(),
          .lines = x.dims[3],
          .plane_stride = x.strides[0],
          .line_stride = x.strides[3],
          .line_length = (x.dims[4] - 1) * x.strides[4] + (x.channels() - 1) * x.strides[1] + 1,
          .place_lines = y.dims[3],
          .line_positions = y.dims[4],
          .stride = geometry.stride[1],
          .before = geometry.before[1],
          .extent = geometry.extent(1)};
}

}  // namespace cermet::cuda
