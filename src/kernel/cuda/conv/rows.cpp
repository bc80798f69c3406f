#include "kernel/cuda/conv/rows.hpp"

#include <algorithm>

namespace cermet::cuda {
namespace {

/// Whether runs of a row are aligned to their bytes, of which an access takes 16 at most.
bool is_aligned(const void* data, std::int64_t row, DType dtype, std::int64_t run) {
  const auto size = static_cast<std::int64_t>(size_of(dtype)), bytes = std::min<std::int64_t>(16, run * size);
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0 && row * size % bytes == 0;
}

}  // namespace

std::optional<ConvRows> ConvRows::of(const Product& product, const LaunchArgs& args, std::int64_t run) {
  const TensorView& y = args.outputs[product.y];
  const int leads = y.shape.rank() - 1;
  const std::size_t count = product.extras().size();
  enum { Y, NONE, ALSO, EXTRA, COUNT = EXTRA + epilogue::most_extras };
  std::array<AxisSteps, COUNT> steps{};  // NONE stays 0: what has no step along rows
  steps[Y] = steps_along(y, leads, 1);
  const TensorView* const also = product.also ? &args.outputs[product.also->y] : nullptr;
  if (also) steps[ALSO] = steps_along(*also, leads, 1);
  for (std::size_t i = 0; i < count; ++i) steps[EXTRA + i] = product.extra_steps(args, i, leads);
  const RowAxes axes = merge_axes(y.shape, leads, steps, NONE);
  if (axes.rank > 1) return std::nullopt;
  ConvRows rows;
  rows.count = axes.m();
  rows.to = {y.data, also ? also->data : nullptr, steps[Y][0], steps[ALSO][0]};
  rows.vectors = is_aligned(y.data, rows.to.y_row, y.dtype, run) && (!also || is_aligned(also->data, rows.to.also_row, also->dtype, run));
  for (std::size_t i = 0; i < count; ++i) {
    const EpilogueExtra& extra = product.extras()[i];
    epilogue::Operand& operand = rows.extra[i];
    operand = product.operand(args, i);
    operand.row = steps[EXTRA + i][0];
    if (extra.extent == TileProgram::Extent::element) rows.vectors = rows.vectors && is_aligned(operand.data, operand.row, extra.dtype, run);
    if (extra.extent == TileProgram::Extent::column) rows.vectors = rows.vectors && operand.column == 1 && is_aligned(operand.data, 0, extra.dtype, run);
  }
  return rows;
}

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
