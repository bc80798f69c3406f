// Configuration and parameters of the depthwise convolution: host and device. Steps count elements.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/tile/epilogue.hpp"

namespace cermet::conv {

inline constexpr int depthwise_threads = 128;

struct DepthwiseConfig {
  DType type = {};                           ///< of x and the weight
  int kernel = 3, stride = 1, dilation = 1;  ///< along the columns
  int places = 4;                            ///< neighbours of a row that a thread computes

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("kernel", kernel), visit("stride", stride), visit("dilation", dilation);
    visit("places", places);
  }
};

struct DepthwiseParams {
  const void* x;
  int64_t x_batch, x_row;   ///< from a sample, a row of pixels to the next; channels are neighbours
  const void* weight;       ///< [taps][channels]
  epilogue::ResultRows to;  ///< places
  epilogue::Operand extra[epilogue::most_extras];
  int32_t x_column, weight_tap;     ///< from a pixel, a tap to the next
  int32_t channels, rows, columns;  ///< of y
  int32_t height, width;            ///< of x
  int32_t kernel_h, stride_h, dilation_h, before_h, before_w;
  uint32_t row_runs, lines;  ///< threads of a row of places; rows of all samples
  bool vectors;              ///< runs of results, and of what the epilogue reads, are aligned
};

}  // namespace cermet::conv
