// What the operators of linear algebra share: checks, and dot products for their references.
#pragma once

#include "op/infer.hpp"
#include "op/reference.hpp"

namespace cermet {

/// A sum of products and the sum of their absolute values, which scales the error bound.
struct DotProduct {
  double sum = 0, magnitude = 0;
};

/// Sum over k < length of a[k * a_step] * b[k * b_step], in double. Steps count elements.
DotProduct dot_product(const void* a, DType a_type, const void* b, DType b_type, std::int64_t length, std::int64_t a_step = 1, std::int64_t b_step = 1);

/// Checks a weight [N, K] against x [.., K] and an optional bias [N]; operand indices as given. Returns N.
Dim check_weight(const Problem& problem, std::size_t x, std::size_t weight, std::size_t bias);
/// Rows of an operand at the symbols' maximum: the product of all its dimensions but the last `trailing`.
std::int64_t max_rows(const Problem& problem, std::size_t operand, int trailing = 1);
/// Throws unless offsets [E + 1] start at 0, never fall and end at `rows`.
void check_group_offsets(std::string_view op, const TensorView& offsets, std::int64_t rows);
/// Dimensions of x with the last one replaced.
Dims with_last(const Dims& dims, Dim last);

}  // namespace cermet
