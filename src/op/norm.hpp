// What the normalizations share: a weight that covers trailing dimensions of x, and their attributes.
#pragma once

#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

/// The operand, where given, has the last dimensions of operand 0, at least one.
void expect_trailing_of_x(const Problem& problem, std::size_t operand);
/// eps is a number >= 0.
void expect_eps(const Problem& problem);
/// The attribute round_sum of operators that add a residual first.
AttributeSpec round_sum_attribute();
/// Element i of operand 0 plus operand 1, the residual, as statistics use it. round_sum stores it as float32 first, as
/// the kernels do, so that both see the same rounded bits.
double residual_sum(const ReferenceCall& call, std::int64_t i, bool round_sum);
/// Trailing dimensions that form one row: as many as the weight has, 1 without a weight.
int trailing_dims(const Problem& problem, std::size_t weight);
/// Elements of such a row at the symbols' maximum.
std::int64_t row_length(const Problem& problem, std::size_t weight);
/// Depth of float32 roundings behind a normalized element: a running sum over the row (errors grow like its half) and a
/// few operations.
double norm_rounding_depth(const Problem& problem, std::size_t weight);

/// Reference of the normalizations that subtract a mean.
struct RowStatistics {
  double mean, scale;    ///< scale = 1 / sqrt(variance + eps)
  double absolute_mean;  ///< mean of |x|, which scales rounding errors
};
RowStatistics row_statistics(std::span<const double> values, double eps);
/// Stores (x - mean) * scale * weight + bias as element `index` of result 0, and the magnitude of its terms.
void store_normalized(const ReferenceCall& call, std::int64_t index, double x, const RowStatistics& statistics,
                      double weight, double bias);

}  // namespace cermet
