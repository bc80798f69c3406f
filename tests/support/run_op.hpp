// Runs an operator by name on views, with the kernel that would be chosen, and owns the results.
#pragma once

#include <string_view>
#include <vector>

#include "select/bound_op.hpp"
#include "select/select.hpp"

namespace cermet {

/// Operands that are not present stand for optional ones that are not given. Throws what the operator throws.
inline std::vector<OwnedTensor> run_op(std::string_view name, const std::vector<TensorView>& inputs,
                                       const Attributes& attributes = {}, int threads = 2) {
  std::vector<std::optional<TensorType>> types;
  for (const TensorView& input : inputs) types.push_back(input.present ? std::optional(input.type()) : std::nullopt);
  const Problem problem = make_problem(*find_operator(name), types, attributes);
  ThreadPool pool(threads);
  BoundOp op(problem, select_kernel(problem), pool);
  std::vector<OwnedTensor> outputs;
  std::vector<TensorView> views;
  for (const TensorType& type : problem.outputs) {
    outputs.emplace_back(type.dtype, bind(type.dims, {}));
    views.push_back(outputs.back().view);
  }
  op.run(inputs, views);
  return outputs;
}

}  // namespace cermet
