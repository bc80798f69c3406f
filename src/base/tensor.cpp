#include "base/tensor.hpp"

#include <optional>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace cermet {

bool TensorType::is_constant() const {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_constant(); });
}

std::string TensorType::to_string() const { return std::string(name_of(dtype)) + cermet::to_string(dims); }

Shape::Shape(std::initializer_list<std::int64_t> dims) {
  for (std::int64_t d : dims) push_back(d);
}

void Shape::push_back(std::int64_t dim) {
  require(rank_ < max_rank, "tensor rank: expected at most {}, found more", max_rank);
  dims_[static_cast<std::size_t>(rank_++)] = dim;
}

std::int64_t Shape::elements() const {
  std::int64_t n = 1;
  for (std::int64_t d : *this) n *= d;
  return n;
}

std::string Shape::to_string() const { return cermet::to_string(to_dims(*this)); }

Shape dense_strides(const Shape& shape) {
  Shape strides = shape;
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

TensorView::TensorView(void* memory, DType type, const Shape& dims)
    : data(memory), dtype(type), shape(dims), strides(dense_strides(dims)), present(true) {}

bool TensorView::is_dense() const {
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    if (shape[axis] != 1 && strides[axis] != step) return elements() == 0;
    step *= shape[axis];
  }
  return true;
}

TensorType TensorView::type() const { return {dtype, to_dims(shape)}; }

Shape bind(const Dims& dims, const SymbolValues& symbols) {
  Shape shape;
  for (const Dim& d : dims) shape.push_back(d.value(symbols));
  return shape;
}

Dims to_dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

std::int64_t dense_bytes(DType dtype, const Shape& shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::optional<std::int64_t> bytes = byte_size(dtype);
  for (const std::int64_t dim : shape) bytes = bytes && dim > 0 ? checked_mul(*bytes, dim) : std::nullopt;
  if (!bytes)
    fail(Status::out_of_memory, "tensor {}{}: expected fewer than 2^63 bytes", name_of(dtype), shape.to_string());
  return *bytes;
}

}  // namespace cermet
