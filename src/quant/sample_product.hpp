// Products of sampled rows with a weight, by the kernels that models run on, and how far results are from each other.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "quant/row_loops.hpp"
#include "quant/weight_matrix.hpp"
#include "select/bound_op.hpp"

namespace cermet {

/// y = x W^T in float32, x float32 [rows, K], W real [N, K].
class RealProduct {
 public:
  RealProduct(const TensorView& weight, std::int64_t rows, ThreadPool& pool);
  /// Another weight of the same type and shape takes the place of the first.
  void set_weight(const TensorView& weight);
  void run(const TensorView& x, const TensorView& y);
  /// Whether the product holds a packed copy, so that the weight's memory may be used for other things.
  bool has_copy() const { return op_.kernel().weight_layout(op_.problem(), 1) != nullptr; }

 private:
  BoundOp op_;
  TensorView weight_;
};

/// y = (x scale of the row) (W scale of the row)^T in float32, x int8 [rows, K], W that of a QuantizedWeight.
class Int8Product {
 public:
  Int8Product(const QuantizedWeight& weight, std::int64_t rows, ThreadPool& pool);
  void set_weight(const QuantizedWeight& weight);
  void run(const TensorView& x, std::span<const float> row_scales, const TensorView& y);

 private:
  BoundOp op_;
  TensorView codes_, scales_;
};

/// Memory that the products of a unit's modules use one after the other: fresh memory costs more than the products
/// themselves.
struct ProductScratch {
  AlignedBuffer result, operand, values;
  /// Bound products of one module, and whose weights they hold.
  struct Slot {
    std::int64_t rows = 0;
    std::optional<RealProduct> real;
    std::optional<Int8Product> int8;
    std::uint64_t real_owner = 0, int8_owner = 0;
    OwnedTensor values;  ///< where the kernel takes weights as they lie
  };
  std::vector<Slot> slots;
  std::uint64_t owners = 0;  ///< products so far

  /// A tensor in one of the buffers, which grows where it must.
  static TensorView view(AlignedBuffer& buffer, DType dtype, const Shape& shape);
};

/// A product of one of a unit's modules with any quantized weight and an input that is unquantized, or quantized with
/// given row scales. Results, float32 [rows, N], are valid until the scratch is used again.
class QuantizedProduct {
 public:
  /// The weight and the scratch must outlive the object.
  QuantizedProduct(const QuantizedWeight& weight, std::int64_t rows, ThreadPool& pool, ProductScratch& scratch,
                   std::size_t module);
  /// With an unquantized input.
  TensorView run_real(const TensorView& x);
  /// With the input quantized on `grid`, whose type is the weight's. A single scale applies to all rows.
  TensorView run_quantized(const TensorView& x, const QuantizationGrid& grid, std::span<const float> row_scales);

 private:
  ProductScratch::Slot& slot();
  RealProduct& real();
  Int8Product& int8();
  TensorView result() const;

  const QuantizedWeight& weight_;
  std::int64_t rows_;
  ThreadPool& pool_;
  ProductScratch& scratch_;
  std::size_t module_;
  std::uint64_t owner_;
};

/// Dynamic per-row scales, in float32 as operators compute them: absmax / 127, or of fp8 absmax / 448; a row of zeros
/// has the scale 1.
std::vector<float> dynamic_scales(const TensorView& x, const QuantizationGrid& grid, ThreadPool& pool);

/// Distances of rows [begin, end) of two results in float32 [rows, N], in the order of rows.
row_loops::Distance distance_of_rows(const TensorView& expected, const TensorView& found, std::int64_t begin,
                                     std::int64_t end, ThreadPool& pool);

}  // namespace cermet
