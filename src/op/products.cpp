#include "op/products.hpp"

namespace cermet {

DotProduct dot_product(const void* a, DType a_type, const void* b, DType b_type, std::int64_t length, std::int64_t a_step, std::int64_t b_step) {
  DotProduct dot;
  for (std::int64_t k = 0; k < length; ++k) {
    const double term = format::load_element(a, a_type, k * a_step) * format::load_element(b, b_type, k * b_step);
    dot.sum += term;
    dot.magnitude += std::abs(term);
  }
  return dot;
}

Dim check_weight(const Problem& problem, std::size_t x, std::size_t weight, std::size_t bias) {
  expect_rank(problem, weight, 2);
  expect_dim(problem, weight, 1, dim_of(problem, x, -1), "K of x");
  const Dim n = dim_of(problem, weight, 0);
  if (problem.has(bias)) expect_dims(problem, bias, {n}, "N of the weight");
  return n;
}

std::int64_t max_rows(const Problem& problem, std::size_t operand, int trailing) {
  std::int64_t rows = 1;
  for (int axis = 0; axis + trailing < problem.input(operand).rank(); ++axis) rows *= problem.size(operand, axis);
  return rows;
}

void check_group_offsets(std::string_view op, const TensorView& offsets, std::int64_t rows) {
  const std::int64_t last = offsets.elements() - 1;
  for (std::int64_t e = 0, previous = 0; e <= last; ++e) {
    const std::int64_t offset = load_index(offsets, e);
    require(e > 0 || offset == 0, "{}: offsets: expected the first to be 0, found {}", op, offset);
    require(offset >= previous && offset <= rows, "{}: offsets: expected rising numbers up to {}, found {} at {}", op, rows, offset, e);
    require(e < last || offset == rows, "{}: offsets: expected the last to be {} (rows of x), found {}", op, rows, offset);
    previous = offset;
  }
}

Dims with_last(const Dims& dims, Dim last) {
  Dims result = dims;
  result.back() = last;
  return result;
}

}  // namespace cermet
