#include "op/products.hpp"

namespace cermet {

DotProduct dot_product(const void* a, DType a_type, const void* b, DType b_type, std::int64_t length,
                       std::int64_t a_step, std::int64_t b_step) {
  constexpr double normal = 0x1p-126,
                   unit = 0x1p24;  // smallest normal float32 and bf16; what a bound divides magnitudes by
  constexpr double below_normal =
      normal * 17 / 16;  // a sum for each term, and two for each 32 terms, which tiles of processors sum by themselves
  DotProduct dot;
  double flushed = 0;  // what bf16 products of processors take as zero: terms of subnormal elements, and subnormal sums
  for (std::int64_t k = 0; k < length; ++k) {
    const double x = format::load_element(a, a_type, k * a_step), y = format::load_element(b, b_type, k * b_step),
                 term = x * y;
    dot.sum += term;
    dot.magnitude += std::abs(term);
    flushed += std::abs(x) < normal || std::abs(y) < normal ? std::abs(term) + below_normal : below_normal;
  }
  // A bound multiplies by `length` or more, so this adds `flushed` to it.
  if (a_type == DType::bf16 && b_type == DType::bf16 && length > 0)
    dot.magnitude += flushed * unit / static_cast<double>(length);
  return dot;
}

Dim check_weight(const Problem& problem, std::size_t x, std::size_t weight, std::size_t bias) {
  expect_rank(problem, weight, 2);
  expect_dim(problem, weight, 1, dim_of(problem, x, -1), fmt::format("K of {}", problem.input_name(x)));
  Dim n = dim_of(problem, weight, 0);
  if (problem.has(bias)) expect_dims(problem, bias, {n}, fmt::format("N of {}", problem.input_name(weight)));
  return n;
}

std::int64_t max_rows(const Problem& problem, std::size_t operand, int trailing) {
  std::int64_t rows = 1;
  for (int axis = 0; axis + trailing < problem.input(operand).rank(); ++axis) rows *= problem.size(operand, axis);
  return rows;
}

MatrixBatch::MatrixBatch(const TensorView& view, bool reduction_first, const TensorView& result)
    : data_(view.as<const std::byte>()), element_bytes_(byte_size(view.dtype)) {
  const int rank = view.shape.rank(), reduction = reduction_first ? rank - 2 : rank - 1,
            outer = reduction_first ? rank - 1 : rank - 2;
  length = view.shape[reduction];
  length_step = view.strides[reduction];
  outer_step = view.strides[outer];
  for (int axis = 0; axis + 2 < result.shape.rank(); ++axis) {
    const int own = axis - (result.shape.rank() - rank);
    count_ *= result.shape[axis];
    batch_dims_.push_back(result.shape[axis]);
    batch_steps_.push_back(own >= 0 && view.shape[own] != 1 ? view.strides[own] : 0);
  }
}

const std::byte* MatrixBatch::at(std::int64_t batch, std::int64_t outer) const {
  std::int64_t offset = outer * outer_step;
  for (int axis = batch_dims_.rank() - 1; axis >= 0; --axis) {
    offset += batch % batch_dims_[axis] * batch_steps_[axis];
    batch /= batch_dims_[axis];
  }
  return data_ + offset * element_bytes_;
}

void check_group_offsets(std::string_view op, const TensorView& offsets, std::int64_t rows) {
  const std::int64_t last = offsets.elements() - 1;
  for (std::int64_t e = 0, previous = 0; e <= last; ++e) {
    const std::int64_t offset = load_index(offsets, e);
    require(e > 0 || offset == 0, "{}: offsets: expected the first to be 0, found {}", op, offset);
    require(offset >= previous && offset <= rows, "{}: offsets: expected rising numbers up to {}, found {} at {}", op,
            rows, offset, e);
    require(e < last || offset == rows, "{}: offsets: expected the last to be {} (rows of x), found {}", op, rows,
            offset);
    previous = offset;
  }
}

Dims with_last(const Dims& dims, const Dim& last) {
  Dims result = dims;
  result.back() = last;
  return result;
}

}  // namespace cermet
