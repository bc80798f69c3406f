// Which operands of a product an item of its launch touches, for every family.
#pragma once

#include "kernel/cuda/gemm/product.hpp"
#include "kernel/cuda/item_axes.hpp"

namespace cermet::cuda {

/// What an item of a launch has of y[batches, m, n].
struct ProductTiles {
  ItemGrid grid = {};
  std::int64_t m = 0, n = 0;
  Along rows = {}, columns = {};
  std::array<std::int64_t, 2> batches{1, 1};  ///< counted by the grid's outer dimensions
  std::int64_t groups = 0;  ///< of rows with weights of their own, in front of those; 0: there are none

  Along batch(int axis) const { return tiles_along(axis == 0 ? grid_outer : grid_middle, 1); }
};

/// What a launch of a product touches.
class ProductItems {
 public:
  ProductItems(const Product& product, const LaunchArgs& args, const ProductTiles& tiles)
      : product_(&product), args_(&args), tiles_(tiles) {}

  /// Steps of an operand from batch to batch.
  using Batches = std::array<std::int64_t, 2>;

  /// x or y, one row below the other; of their `length` elements those that `along` says.
  ByteRange rows(const TensorView& view, const Batches& batches, std::int64_t row, std::int64_t length,
                 std::int64_t step, const Along& along = {}) const;
  /// The rows of a weight, which are the columns of the result: of one matrix, or of `parts` whose columns are computed
  /// together.
  ByteRange weight(const TensorView& view, const Batches& batches, std::int64_t row, std::int64_t length,
                   std::int64_t step, std::int64_t parts = 1) const;
  /// The result, whose columns are neighbours.
  ByteRange result(const Batches& batches, std::int64_t row) const;
  ByteRange second_result(const Batches& batches, std::int64_t row) const;

  void read(const ByteRange& range);
  void read(const TensorView* view) {
    if (view != nullptr) read(byte_range(*view));
  }
  void write(const ByteRange& range);
  /// Operand i of the epilogue; `operand.group` counts only where there are groups.
  void read_extra(std::size_t i, const epilogue::Operand& operand, const Batches& batches = {});
  /// The sums of the weight's columns.
  void read_column_sums(const void* sums);
  /// Says all that, of the last launch.
  void declare() const;

 private:
  ItemAxes axes_of(const void* data, DType dtype, const Batches& batches) const;

  const Product* product_;
  const LaunchArgs* args_;
  ProductTiles tiles_;
  static constexpr std::size_t most = 32;
  std::array<ByteRange, most> reads_, writes_;
  std::size_t read_count_ = 0, write_count_ = 0;
};

}  // namespace cermet::cuda
