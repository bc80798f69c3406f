#include "kernel/cuda/gemm/product_items.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

ItemAxes ProductItems::axes_of(const void* data, DType dtype, const Batches& batches) const {
  ItemAxes axes(data, static_cast<std::int64_t>(size_of(dtype)), tiles_.grid);
  for (int axis = 0; axis < 2; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (tiles_.batches[a] > 1) axes.axis(tiles_.batches[a], batches[a], tiles_.batch(axis));
  }
  return axes;
}

ByteRange ProductItems::rows(const TensorView& view, const Batches& batches, std::int64_t row, std::int64_t length,
                             std::int64_t step, const Along& along) const {
  return axes_of(view.data, view.dtype, batches).axis(tiles_.m, row, tiles_.rows).axis(length, step, along).range();
}

ByteRange ProductItems::weight(const TensorView& view, const Batches& batches, std::int64_t row, std::int64_t length,
                               std::int64_t step, std::int64_t parts) const {
  ItemAxes axes = axes_of(view.data, view.dtype, batches);
  if (tiles_.groups > 0) axes.axis(tiles_.groups, view.strides[0]);
  return axes.axis(parts, tiles_.n * row).axis(tiles_.n, row, tiles_.columns).axis(length, step).range();
}

ByteRange ProductItems::result(const Batches& batches, std::int64_t row) const {
  return rows(args_->outputs[product_->y], batches, row, tiles_.n, 1, tiles_.columns);
}

ByteRange ProductItems::second_result(const Batches& batches, std::int64_t row) const {
  return rows(args_->outputs[product_->also->y], batches, row, tiles_.n, 1, tiles_.columns);
}

void ProductItems::read(const ByteRange& range) {
  CERMET_ASSERT(read_count_ < most);
  if (range.bytes > 0) reads_[read_count_++] = range;
}

void ProductItems::write(const ByteRange& range) {
  CERMET_ASSERT(write_count_ < most);
  if (range.bytes > 0) writes_[write_count_++] = range;
}

void ProductItems::read_extra(std::size_t i, const epilogue::Operand& operand, const Batches& batches) {
  const EpilogueExtra& extra = product_->extras()[i];
  using Extent = TileProgram::Extent;
  ItemAxes axes = axes_of(operand.data, extra.dtype,
                          extra.extent == Extent::element || extra.extent == Extent::row ? batches : Batches{});
  if (tiles_.groups > 0) axes.axis(tiles_.groups, operand.group);
  if (extra.extent == Extent::element || extra.extent == Extent::row) axes.axis(tiles_.m, operand.row, tiles_.rows);
  if (extra.extent == Extent::element) axes.axis(tiles_.n, 1, tiles_.columns);
  if (extra.extent == Extent::column) {
    Along along = tiles_.columns;  // of columns that share a value
    if (extra.columns > 1) along.width += (extra.columns - 1) * along.per, along.per *= extra.columns;
    axes.axis(div_up(tiles_.n, extra.columns), operand.column, along);
  }
  read(axes.range());
}

void ProductItems::read_column_sums(const void* sums) {
  read(axes_of(sums, DType::i32, {}).axis(tiles_.n, 1, tiles_.columns).range());
}

void ProductItems::declare() const {
  args_->queue->declare(std::span(reads_).first(read_count_), std::span(writes_).first(write_count_));
}

}  // namespace cermet::cuda
