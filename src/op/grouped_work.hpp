// What a grouped product reads of its weights: those of the groups that have rows.
#pragma once

#include "base/tensor.hpp"
#include "op/schema/problem.hpp"

namespace cermet {

/// Part of the cost of a grouped_linear. The values of its offsets are known only where it runs.
struct GroupedWork {
  std::int64_t groups =
      0;  ///< that cost_of() takes to have rows: all of them, or one for each row where there are fewer rows
  double bytes_per_group = 0;  ///< of weights, their scales and biases
};

GroupedWork grouped_work(const Problem& problem);

/// Whether the last group has no weight: offsets are one more than groups with a weight need.
bool has_unweighted_group(const Problem& problem);

/// Those of the `groups` with a weight that have rows, by the operator's operand `offsets`; in host memory.
std::int64_t used_groups(const TensorView& offsets, std::int64_t groups);

}  // namespace cermet
