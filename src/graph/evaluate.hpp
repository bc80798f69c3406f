// Operators on tensors that are known while a graph is made: by their definitions, on the CPU.
#pragma once

#include <vector>

#include "op/schema/problem.hpp"

namespace cermet {

/// Elements and operations of the definition's run, 10 to 50 ns each. Dimensions are numbers.
double work_of_definition(const Problem& problem);
/// The definition's results; null for an operand that is not given.
std::vector<TensorData> evaluate(const Problem& problem, const std::vector<const TensorData*>& inputs);

}  // namespace cermet
