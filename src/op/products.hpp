// Shared by the linear algebra operators: checks, and dot products for their references.
#pragma once

#include "op/schema/infer.hpp"
#include "op/schema/reference.hpp"

namespace cermet {

/// A sum of products and the sum of their absolute values, which scales the error bound. Products of bf16 with bf16
/// allow for processors' bf16 dot products, which take subnormal elements and sums as zero.
struct DotProduct {
  double sum = 0, magnitude = 0;
};

/// Sum over k < length of a[k * a_step] * b[k * b_step], in double. Steps count elements.
DotProduct dot_product(const void* a, DType a_type, const void* b, DType b_type, std::int64_t length,
                       std::int64_t a_step = 1, std::int64_t b_step = 1);

/// Checks a weight [N, K] against x [.., K] and an optional bias [N]; operand indices as given. Returns N.
Dim check_weight(const Problem& problem, std::size_t x, std::size_t weight, std::size_t bias);
/// Rows of an operand at the symbols' maximum: the product of all its dimensions but the last `trailing`.
std::int64_t max_rows(const Problem& problem, std::size_t operand, int trailing = 1);
/// Stacks of matrices whose leading dimensions broadcast: element (batch, outer, k) with k along the reduction.
class MatrixBatch {
 public:
  /// `reduction_first`: stored as [.., K, outer] instead of [.., outer, K]. Batches are counted over the leading
  /// dimensions of `result`.
  MatrixBatch(const TensorView& view, bool reduction_first, const TensorView& result);
  std::int64_t count() const { return count_; }
  /// Address of element (batch, outer, 0).
  const std::byte* at(std::int64_t batch, std::int64_t outer) const;

  std::int64_t length;                   ///< K
  std::int64_t outer_step, length_step;  ///< in elements

 private:
  const std::byte* data_;
  std::int64_t element_bytes_, count_ = 1;
  Shape batch_dims_, batch_steps_;  ///< of the result; a step of 0 repeats
};

/// Throws unless offsets [E + 1] start at 0, never fall and end at `rows`.
void check_group_offsets(std::string_view op, const TensorView& offsets, std::int64_t rows);
/// Dimensions of x with the last one replaced.
Dims with_last(const Dims& dims, const Dim& last);

}  // namespace cermet
