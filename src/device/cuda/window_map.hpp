// Maps of bulk tensor copies that gather the windows of a convolution.
#pragma once

#include <cstdint>

#include "device/device.hpp"

namespace cermet::cuda {

/// Pixels of images [samples, height, width, channels], in windows of one tap: copies take `box_pixels` neighbouring
/// windows, and zeros outside.
struct WindowMapShape {
  void* data = nullptr;  ///< 16-byte aligned
  DType dtype = DType::bf16;
  std::int64_t samples = 0, height = 0, width = 0, channels = 0;
  std::int64_t sample_stride = 0, row_stride = 0, column_stride = 0;  ///< in elements; in bytes multiples of 16
  int stride_h = 1, stride_w = 1;                                     ///< between windows, at most 8
  /// Where the first tap of windows is, from the first pixel and from the last: at least -128, at most 127.
  int first_h = 0, first_w = 0, last_h = 0, last_w = 0;
  std::uint32_t box_pixels = 0, box_channels = 0;  ///< 128 bytes of channels, swizzled
};

/// A device that encodes its own maps, such as the emulated one of the tests.
class WindowMaps {
 public:
  virtual ~WindowMaps() = default;
  virtual TensorMap window_map(const WindowMapShape& shape) const = 0;
};

/// A map for a device; of the null device, nothing.
TensorMap window_map(const Device& device, const WindowMapShape& shape);

}  // namespace cermet::cuda
