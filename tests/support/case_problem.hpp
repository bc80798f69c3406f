// Problems of operators' cases.
#pragma once

#include <optional>
#include <vector>

#include "op/schema/operator.hpp"

namespace cermet {

/// What a case asks of its operator, no operand of it constant.
inline Problem case_problem(OpKind op, const Case& recipe, const Target* target = nullptr) {
  std::vector<std::optional<TensorType>> types;
  for (const auto& input : recipe.inputs) types.push_back(input ? std::optional(input->type) : std::nullopt);
  Problem problem = make_problem(definition(op), std::move(types), recipe.attributes);
  problem.target = target;
  return problem;
}

}  // namespace cermet
