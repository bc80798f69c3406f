#include "kernel/cuda/window_lines.hpp"

namespace cermet::cuda {

ByteRange lines_of_items(const TensorView& x, const WindowLines& w, const ItemGrid& grid, GridDimension coordinate,
                         std::int64_t positions) {
  const bool even = w.planes == 1 || (w.lines == w.place_lines * w.stride && w.plane_stride == w.lines * w.line_stride);
  if (!even) {
    const ItemAxes all =
        ItemAxes(x, grid).axis(w.planes, w.plane_stride).axis(w.lines, w.line_stride).axis(w.line_length, 1);
    return all.range();
  }
  // A line of places begins `stride` lines of x after the one before. Rounding down may give a line too few by `stride`
  // - 1 / positions of a line.
  const std::int64_t per = w.line_positions, early = w.stride == 1 ? 0 : (per - 1) * w.stride;
  const std::int64_t offset = -early - w.before * per,
                     width = (positions - 1) * w.stride + (w.extent - w.before) * per - offset;
  return ItemAxes(x, grid)
      .axis(w.planes * w.lines, w.line_stride, {coordinate, positions * w.stride, width, offset, per})
      .axis(w.line_length, 1)
      .range();
}

}  // namespace cermet::cuda
