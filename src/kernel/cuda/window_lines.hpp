// Windows over the lines of images, and which lines an item's windows lie in.
#pragma once

#include "kernel/cuda/item_axes.hpp"

namespace cermet::cuda {

/// Windows whose places are walked line by line, through all planes: samples, or channels of samples.
struct WindowLines {
  std::int64_t planes = 1, lines = 1;  ///< of x
  std::int64_t plane_stride = 0, line_stride = 0,
               line_length = 1;  ///< in elements; line_length: from the first to the last of a line
  std::int64_t place_lines = 1,
               line_positions = 1;  ///< lines of places in a plane, and positions in one as items count them
  std::int64_t stride = 1, before = 0, extent = 1;  ///< of windows across lines; extent: from the first to the last tap
};

/// What items read of the memory where x begins, whose places along `coordinate` have the next `positions` each. Any of
/// it, where planes of windows do not go with planes of x.
ByteRange lines_of_items(const TensorView& x, const WindowLines& windows, const ItemGrid& grid,
                         GridDimension coordinate, std::int64_t positions);

}  // namespace cermet::cuda
