// Products of one channel's windows with that channel's kernel, for vectors of channels.
#pragma once

#include <cstdint>

#include "kernel/cpu/conv/taps.hpp"

namespace cermet::cpu {

/// Neighbouring places that are computed at a time.
inline constexpr int depthwise_places = 7;
/// Channels that a product takes at least.
inline constexpr std::int64_t least_depthwise_channels = 16;

/// Rows of results that a block has at most: neighbours read rows of x in common.
inline constexpr int depthwise_rows = 2;

/// Windows of `count` neighbouring places, of some channels, in one row of places or two. Along a row their elements
/// are counted from the first window's first tap.
struct DepthwiseBlock {
  const float* x;  ///< tap (0, 0, 0) of the first window, which may lie in the padding; at the first channel
  std::int64_t plane_step, row_step,
      pixel;  ///< elements of x between taps of different planes and rows, and between pixels
  std::int64_t first_plane, last_plane;                              ///< taps that are in x
  std::int64_t first_row[depthwise_rows], last_row[depthwise_rows];  ///< the same for each row of places
  std::int64_t low, high;                                            ///< elements of a row that are in x
  std::int64_t rows, taps, stride, dilation;  ///< rows of taps in a plane, taps in a row; along a row
  const float* weight;                        ///< [planes][rows][taps][tap_step], at the first channel
  std::int64_t tap_step, columns, count;
  std::int64_t place_rows, row_places;  ///< rows of places, and places from one to the next
  std::int64_t place_row_step;  ///< elements of x from the windows of one to those of the next; of one row of taps:
                                ///< row_step times stride
};

/// Computes a block and stores it.
using MultiplyDepthwise = void (*)(const DepthwiseBlock& block, const TapStore& store);

/// For kernels of so many taps along a row; for the active instruction set.
MultiplyDepthwise depthwise_product(std::int64_t taps, std::int64_t stride, std::int64_t dilation);

}  // namespace cermet::cpu
