#include "quant/sample_product.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "select/select.hpp"

namespace cermet {
namespace {

std::optional<TensorType> type_of(const TensorView& view) { return view.type(); }

BoundOp bind_product(OpKind op, std::vector<std::optional<TensorType>> inputs, ThreadPool& pool) {
  Problem problem = make_problem(definition(op), std::move(inputs), {{"out_dtype", "f32"}});
  problem.constant_inputs = 1u << 1;  // the weight
  const Choice choice =
      select_kernel(problem, {.tuned = false});  // so that a quantized model does not depend on what was measured here
  return BoundOp(std::move(problem), choice, pool);
}

}  // namespace

RealProduct::RealProduct(const TensorView& weight, std::int64_t rows, ThreadPool& pool)
    : op_(bind_product(OpKind::linear, {TensorType{DType::f32, {rows, weight.shape[1]}}, type_of(weight)}, pool)) {
  set_weight(weight);
}

void RealProduct::set_weight(const TensorView& weight) {
  weight_ = weight;
  op_.prepack(1, weight);
}

void RealProduct::run(const TensorView& x, const TensorView& y) {
  const std::array inputs{x, weight_};
  op_.run(inputs, {&y, 1});
}

Int8Product::Int8Product(const QuantizedWeight& weight, std::int64_t rows, ThreadPool& pool)
    : op_(bind_product(OpKind::scaled_mm,
                       {TensorType{DType::i8, {rows, weight.quantized.view.shape[1]}}, type_of(weight.quantized.view),
                        TensorType{DType::f32, {rows}}, TensorType{DType::f32, {weight.quantized.view.shape[0]}}},
                       pool)) {
  set_weight(weight);
}

void Int8Product::set_weight(const QuantizedWeight& weight) {
  codes_ = weight.quantized.view;
  scales_ = TensorView(const_cast<float*>(weight.scales.data()), DType::f32, {codes_.shape[0]});
  op_.prepack(1, codes_);
}

void Int8Product::run(const TensorView& x, std::span<const float> row_scales, const TensorView& y) {
  const TensorView rows(const_cast<float*>(row_scales.data()), DType::f32,
                        {static_cast<std::int64_t>(row_scales.size())});
  const std::array inputs{x, codes_, rows, scales_};
  op_.run(inputs, {&y, 1});
}

TensorView ProductScratch::view(AlignedBuffer& buffer, DType dtype, const Shape& shape) {
  const std::int64_t bytes = dense_bytes(dtype, shape);
  if (buffer.size() < bytes) {
    buffer = {};
    buffer = AlignedBuffer(bytes);
  }
  return {buffer.data(), dtype, shape};
}

QuantizedProduct::QuantizedProduct(const QuantizedWeight& weight, std::int64_t rows, ThreadPool& pool,
                                   ProductScratch& scratch, std::size_t module)
    : weight_(weight), rows_(rows), pool_(pool), scratch_(scratch), module_(module), owner_(++scratch.owners) {}

TensorView QuantizedProduct::result() const {
  return ProductScratch::view(scratch_.result, DType::f32, {rows_, weight_.quantized.view.shape[0]});
}

/// The module's products, bound for this many rows.
ProductScratch::Slot& QuantizedProduct::slot() {
  if (scratch_.slots.size() <= module_) scratch_.slots.resize(module_ + 1);
  ProductScratch::Slot& slot = scratch_.slots[module_];
  if (slot.rows != rows_) slot = ProductScratch::Slot{};
  slot.rows = rows_;
  return slot;
}

/// Quantized values as bf16, which holds them exactly.
RealProduct& QuantizedProduct::real() {
  ProductScratch::Slot& s = slot();
  if (s.real_owner == owner_) return *s.real;
  const TensorView& quantized = weight_.quantized.view;
  TensorView values = ProductScratch::view(scratch_.values, DType::bf16, quantized.shape);
  pool_.parallel_for(quantized.elements(), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    auto* to = values.as<format::bf16>();
    if (quantized.dtype == DType::i8)
      for (std::int64_t i = begin; i < end; ++i)
        to[i] = format::to_bf16(static_cast<float>(quantized.as<std::int8_t>()[i]));
    else
      for (std::int64_t i = begin; i < end; ++i)
        to[i] = format::to_bf16(format::to_float(quantized.as<format::e4m3>()[i]));
  });
  if (s.real) s.real->set_weight(values);
  else s.real.emplace(values, rows_, pool_);
  if (!s.real->has_copy()) {
    s.values = OwnedTensor(values.dtype, values.shape);
    std::memcpy(s.values.memory.data(), values.data, static_cast<std::size_t>(s.values.memory.size()));
    s.real->set_weight(s.values.view);
  }
  s.real_owner = owner_;
  return *s.real;
}

Int8Product& QuantizedProduct::int8() {
  ProductScratch::Slot& s = slot();
  if (s.int8_owner == owner_) return *s.int8;
  if (s.int8) s.int8->set_weight(weight_);
  else s.int8.emplace(weight_, rows_, pool_);
  s.int8_owner = owner_;
  return *s.int8;
}

TensorView QuantizedProduct::run_real(const TensorView& x) {
  RealProduct& product = real();
  const TensorView y = result();
  product.run(x, y);
  const std::int64_t columns = y.shape[1];
  pool_.parallel_for(rows_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r)
      for (std::int64_t n = 0; n < columns; ++n)
        y.as<float>()[r * columns + n] *= weight_.scales[static_cast<std::size_t>(n)];
  });
  return y;
}

TensorView QuantizedProduct::run_quantized(const TensorView& x, const QuantizationGrid& grid,
                                           std::span<const float> row_scales) {
  const std::int64_t columns = x.shape[1];
  CERMET_ASSERT(grid.dtype == weight_.quantized.view.dtype);
  std::vector<float> scales(static_cast<std::size_t>(rows_), row_scales.front());
  if (row_scales.size() > 1) std::ranges::copy(row_scales, scales.begin());
  const bool is_int8 = grid.dtype == DType::i8;
  const TensorView operand = ProductScratch::view(scratch_.operand, is_int8 ? DType::i8 : DType::f32, x.shape);
  pool_.parallel_for(rows_, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> quantized(static_cast<std::size_t>(columns));
    for (std::int64_t r = begin; r < end; ++r) {
      const float scale = scales[static_cast<std::size_t>(r)];
      row_loops::encode(grid, {x.as<float>() + r * columns, static_cast<std::size_t>(columns)}, scale,
                        quantized.data());
      if (is_int8)
        for (std::int64_t k = 0; k < columns; ++k)
          operand.as<std::int8_t>()[r * columns + k] = static_cast<std::int8_t>(quantized[static_cast<std::size_t>(k)]);
      else
        for (std::int64_t k = 0; k < columns; ++k)
          operand.as<float>()[r * columns + k] = quantized[static_cast<std::size_t>(k)] * scale;
    }
  });
  if (!is_int8) return run_real(operand);
  const TensorView y = result();
  int8().run(operand, scales, y);
  return y;
}

std::vector<float> dynamic_scales(const TensorView& x, const QuantizationGrid& grid, ThreadPool& pool) {
  const float range = grid.is_fp8() ? grid.range : 127.0f;
  const std::int64_t columns = x.shape[1];
  std::vector<float> scales(static_cast<std::size_t>(x.shape[0]));
  pool.parallel_for(x.shape[0], 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const float largest = format::float_from_bits(
          row_loops::largest_bits({x.as<float>() + r * columns, static_cast<std::size_t>(columns)}));
      scales[static_cast<std::size_t>(r)] = largest > 0 ? largest / range : 1.0f;
    }
  });
  return scales;
}

row_loops::Distance distance_of_rows(const TensorView& expected, const TensorView& found, std::int64_t begin,
                                     std::int64_t end, ThreadPool& pool) {
  const std::int64_t columns = expected.shape[1];
  std::vector<row_loops::Distance> rows(static_cast<std::size_t>(end - begin));
  pool.parallel_for(end - begin, 1, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t r = from; r < to; ++r) {
      const std::int64_t at = (begin + r) * columns;
      rows[static_cast<std::size_t>(r)] =
          row_loops::distance({expected.as<float>() + at, static_cast<std::size_t>(columns)}, found.as<float>() + at);
    }
  });
  row_loops::Distance sum;
  for (const row_loops::Distance& row : rows) {
    sum.error += row.error;
    sum.reference += row.reference;
  }
  return sum;
}

}  // namespace cermet
