#include "op/norm.hpp"

#include "op/schema/reference.hpp"

namespace cermet {

void expect_trailing_of_x(const Problem& problem, std::size_t operand) {
  if (!problem.has(operand)) return;
  expect_min_rank(problem, operand, 1);
  const int trailing = problem.input(operand).rank();
  expect_min_rank(problem, 0, trailing);
  for (int axis = -1; axis >= -trailing; --axis)
    expect_dim(problem, operand, axis, dim_of(problem, 0, axis), "that of x");
}

void expect_eps(const Problem& problem) {
  if (!(problem.attributes.number("eps") >= 0)) bad_attribute(problem, "eps", "a non-negative number");
}

AttributeSpec round_sum_attribute() { return {"round_sum", false, "normalize the sum as rounded for storage"}; }

double residual_sum(const ReferenceCall& call, std::int64_t i, bool round_sum) {
  const TensorView& residual = call.inputs[1];
  const double x = load(call.inputs[0], i), added = load(residual, i);
  if (!round_sum) return x + added;
  return format::rounded_to(residual.dtype, static_cast<float>(x) + static_cast<float>(added));
}

int trailing_dims(const Problem& problem, std::size_t weight) {
  return problem.has(weight) ? problem.input(weight).rank() : 1;
}

std::int64_t row_length(const Problem& problem, std::size_t weight) {
  std::int64_t length = 1;
  for (int axis = -1; axis >= -trailing_dims(problem, weight); --axis) length *= problem.size(0, axis);
  return length;
}

double norm_rounding_depth(const Problem& problem, std::size_t weight) {
  return static_cast<double>(row_length(problem, weight)) / 2 + 8;
}

RowStatistics row_statistics(std::span<const double> values, double eps) {
  const auto count = static_cast<double>(values.size());
  double sum = 0, absolute = 0, squares = 0;
  for (const double v : values) {
    sum += v;
    absolute += std::abs(v);
  }
  for (const double v : values) squares += (v - sum / count) * (v - sum / count);
  return {sum / count, 1 / std::sqrt(squares / count + eps), absolute / count};
}

void store_normalized(const ReferenceCall& call, std::int64_t index, double x, const RowStatistics& statistics,
                      double weight, double bias) {
  const double normalized = (x - statistics.mean) * statistics.scale;
  store(call.outputs[0], index, normalized * weight + bias);
  // The mean's error is relative to |x|; it enters the difference, and once more the deviations behind the scale.
  const double spread = (std::abs(x) + statistics.absolute_mean) * statistics.scale;
  note_magnitude(call, 0, index, std::abs(weight) * spread * (1 + std::abs(normalized)) + std::abs(bias));
}

}  // namespace cermet
