#include "op/coordinates.hpp"

#include "op/schema/infer.hpp"

namespace cermet {

int coordinate_count(const Problem& problem, std::size_t indices, int most) {
  expect_min_rank(problem, indices, 1);
  const Dim count = dim_of(problem, indices, -1);
  if (!count.is_constant() || count.constant() > most)
    bad_operand(problem, indices, fmt::format("a last dimension of at most {} (the axes of x that it indexes)", most),
                problem.input(indices).to_string());
  return static_cast<int>(count.constant());
}

}  // namespace cermet
