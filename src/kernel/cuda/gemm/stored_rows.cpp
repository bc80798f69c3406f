#include "kernel/cuda/gemm/stored_rows.hpp"

#include <algorithm>

namespace cermet::cuda {
namespace {

/// Whether runs of a row are aligned to their bytes, of which an access takes 16 at most.
bool suits_vectors(const void* data, std::int64_t row, DType dtype, std::int64_t run) {
  const auto size = byte_size(dtype), bytes = std::min<std::int64_t>(16, run * size);
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0 && row * size % bytes == 0;
}

}  // namespace

std::optional<StoredRows> StoredRows::of(const Product& product, const LaunchArgs& args, std::int64_t run) {
  const TensorView& y = args.outputs[product.y];
  const int leads = y.shape.rank() - 1;
  const std::size_t count = product.extras().size();
  enum { Y, NONE, SECOND, EXTRA, COUNT = EXTRA + epilogue::most_extras };
  std::array<AxisSteps, COUNT> steps{};  // NONE stays 0: what has no step along rows
  steps[Y] = steps_along(y, leads, 1);
  const TensorView* const second = product.second ? &args.outputs[product.second->y] : nullptr;
  if (second) steps[SECOND] = steps_along(*second, leads, 1);
  for (std::size_t i = 0; i < count; ++i) steps[EXTRA + i] = product.extra_steps(args, i, leads);
  const RowAxes axes = merge_axes(y.shape, leads, steps, NONE);
  if (axes.rank > 1) return std::nullopt;
  StoredRows rows;
  rows.count = axes.m();
  rows.to = {y.data, second ? second->data : nullptr, steps[Y][0], steps[SECOND][0]};
  rows.vectors = suits_vectors(y.data, rows.to.y_row, y.dtype, run) &&
                 (!second || suits_vectors(second->data, rows.to.second_row, second->dtype, run));
  for (std::size_t i = 0; i < count; ++i) {
    const EpilogueExtra& extra = product.extras()[i];
    epilogue::Operand& operand = rows.extra[i];
    operand = product.operand(args, i);
    operand.row = steps[EXTRA + i][0];
    if (extra.extent == TileProgram::Extent::element)
      rows.vectors = rows.vectors && suits_vectors(operand.data, operand.row, extra.dtype, run);
    if (extra.extent == TileProgram::Extent::column)
      rows.vectors = rows.vectors && operand.column == 1 && suits_vectors(operand.data, 0, extra.dtype, run);
  }
  return rows;
}

}  // namespace cermet::cuda
