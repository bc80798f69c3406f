// Transforms of F(4x4, 3x3): a tile of 4 x 4 results of a 3 x 3 kernel needs 36 products for each pair of channels
// instead of 144 (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016).
#pragma once

#include <cstdint>

namespace cermet::cpu {

inline constexpr int winograd_places = 4, winograd_taps = 3, winograd_size = winograd_places + winograd_taps - 1,
                     winograd_points = winograd_size * winograd_size;
/// Channels of x come in multiples of this.
inline constexpr std::int64_t winograd_channels = 16;

/// 6 x 6 pixels of x, of which rows and columns [low, high) are in x and others are zeros.
struct WinogradPatch {
  const float* x;  ///< pixel (0, 0), at the first channel
  std::int64_t row_step, pixel;
  std::int64_t low_row, high_row, low_column, high_column;
};

struct WinogradTransforms {
  /// to[point * point_step + c] for `channels` channels of a patch.
  void (*input)(const WinogradPatch& patch, std::int64_t channels, float* to, std::int64_t point_step);
  /// to[row * 4 + column][32] from sums[point * point_step + c] for 32 columns.
  void (*output)(const float* sums, std::int64_t point_step, float* to);
};

/// For the active instruction set.
WinogradTransforms winograd_transforms();

}  // namespace cermet::cpu
