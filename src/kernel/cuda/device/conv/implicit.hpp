// Configuration and parameters of convolutions as implicit matrix products: host and device. Steps count elements.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/tile/epilogue.hpp"

namespace cermet::conv {

struct ImplicitConfig {
  DType type = {};       ///< of x and the weight
  bool tensor = false;   ///< on the tensor cores
  int block = 64;        ///< places and channels of a tile
  int stages = 2;        ///< of the tensor cores' operands
  bool vectors = false;  ///< 16 bytes of x are channels of one tap, and aligned

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("type", type), visit("tensor", tensor), visit("block", block), visit("stages", stages);
    visit("vectors", vectors);
  }
};

struct ImplicitParams {
  const void* x;
  int64_t x_batch, x_row, x_column;  ///< from a sample, a row of pixels, a pixel to the next; channels are neighbours
  const void* weight;                ///< [outputs][taps][channels of a group], rows padded with zeros
  epilogue::ResultRows to;           ///< places
  epilogue::Operand extra[epilogue::most_extras];
  int32_t m;              ///< places of all samples
  int32_t k;              ///< elements of a row of the weight, its padding included
  int32_t rows, columns;  ///< places of a sample
  int32_t height, width;  ///< pixels of a sample
  int32_t kernel[2], stride[2], dilation[2], before[2];
  int32_t groups, group_inputs, group_outputs;
  bool vectors;  ///< runs of results, and of what the epilogue reads, are aligned
};

}  // namespace cermet::conv
