#include "op/norm.hpp"

namespace cermet {

void expect_trailing_of_x(const Problem& problem, std::size_t operand) {
  if (!problem.has(operand)) return;
  expect_min_rank(problem, operand, 1);
  const int trailing = problem.input(operand).rank();
  expect_min_rank(problem, 0, trailing);
  for (int axis = -1; axis >= -trailing; --axis) expect_dim(problem, operand, axis, dim_of(problem, 0, axis), "that of x");
}

void expect_eps(const Problem& problem) {
  if (!(problem.attributes.number("eps") >= 0)) bad_attribute(problem, "eps", "a non-negative number");
}

int trailing_dims(const Problem& problem, std::size_t weight) { return problem.has(weight) ? problem.input(weight).rank() : 1; }

std::int64_t row_length(const Problem& problem, std::size_t weight) {
  std::int64_t length = 1;
  for (int axis = -1; axis >= -trailing_dims(problem, weight); --axis) length *= problem.size(0, axis);
  return length;
}

double norm_rounding_depth(const Problem& problem, std::size_t weight) { return static_cast<double>(row_length(problem, weight)) / 2 + 8; }

}  // namespace cermet
