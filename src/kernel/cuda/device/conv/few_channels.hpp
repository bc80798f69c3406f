// Configuration and parameters of convolutions of few channels: host and device. Steps count elements.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/integers.hpp"
#include "kernel/cuda/device/tile/epilogue.hpp"

namespace cermet::conv {

/// Windows of few channels as rows of a matrix: a row of a window is a run of neighbouring elements, rounded up to
/// groups of eight.
struct FewChannelsShape {
  int channels = 1, kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, before_w = 0;
  int outputs = 64;  ///< columns of a tile

  static constexpr int places = 16;  ///< of a side of a tile
  static constexpr int unit = 8;     ///< elements of a group: 16 bytes

  CERMET_HOST_DEVICE constexpr int run() const { return kernel_w * channels; }
  CERMET_HOST_DEVICE constexpr int step() const {
    return stride_w * channels;
  }  ///< from the run of a place to that of its neighbour
  /// Where the first run of a tile is after the last multiple of `unit` elements of a row of pixels: rows of tiles are
  /// whole units apart.
  CERMET_HOST_DEVICE constexpr int first() const { return (unit - before_w * channels % unit) % unit; }
  /// Elements before the run that its first group begins with, so that all pairs of elements are aligned, where steps
  /// are even.
  CERMET_HOST_DEVICE constexpr int lead() const { return step() % 2 == 0 ? first() % 2 : 0; }
  CERMET_HOST_DEVICE constexpr int row_groups() const { return (lead() + run() + unit - 1) / unit; }
  CERMET_HOST_DEVICE constexpr int groups() const { return kernel_h * row_groups(); }
  CERMET_HOST_DEVICE constexpr int steps() const {
    return (groups() + 1) / 2;
  }  ///< of the tensor cores: two groups each

  CERMET_HOST_DEVICE constexpr int patch_rows() const { return (places - 1) * stride_h + kernel_h; }
  /// Elements of a row of a tile's pixels in shared memory: a pair of them may be read from the word before or after.
  CERMET_HOST_DEVICE constexpr int patch_row() const {
    return (first() + (places - 1) * step() + row_groups() * unit + 2 + unit - 1) / unit * unit;
  }
  CERMET_HOST_DEVICE constexpr int weight_row() const {
    return steps() * 2 * unit + unit;
  }  ///< an odd number of units, against bank conflicts
  CERMET_HOST_DEVICE constexpr int patch_bytes() const { return patch_rows() * patch_row() * 2; }
  CERMET_HOST_DEVICE constexpr int shared_bytes() const { return patch_bytes() + outputs * weight_row() * 2; }

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("channels", channels), visit("kernel_h", kernel_h), visit("kernel_w", kernel_w);
    visit("stride_h", stride_h), visit("stride_w", stride_w), visit("before_w", before_w), visit("outputs", outputs);
  }
};

struct FewChannelsConfig {
  DType type = {};  ///< of x and the weight
  FewChannelsShape shape = {};

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("shape", shape);
  }
};

struct FewChannelsParams {
  const void* x;
  int64_t x_batch, x_row, x_column;  ///< from a sample, a row of pixels, a pixel to the next; channels are neighbours
  const void* weight;                ///< [outputs][taps][channels], rows padded with zeros
  epilogue::ResultRows to;           ///< places
  epilogue::Operand extra[epilogue::most_extras];
  int32_t k;              ///< elements of a row of the weight, its padding included
  int32_t rows, columns;  ///< places of a sample
  int32_t height, width;  ///< pixels of a sample
  int32_t samples, outputs;
  int32_t before_h;
  bool rows_vectors;  ///< pixels of a row are neighbours, and rows are 16-byte aligned
  bool vectors;       ///< runs of results, and of what the epilogue reads, are aligned
};

}  // namespace cermet::conv
