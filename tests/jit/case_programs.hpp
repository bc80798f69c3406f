// What CUDA kernels would compile for their operators' cases on a device of some compute capability, without one.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/cuda/task.hpp"
#include "op/schema/case.hpp"
#include "op/schema/operator.hpp"
#include "tests/support/region.hpp"

namespace cermet {

inline Problem problem_of(const OpDefinition& op, const Case& test_case, const Target& target) {
  std::vector<std::optional<TensorType>> types;
  std::uint64_t constants = 0;
  for (std::size_t i = 0; i < test_case.inputs.size(); ++i) {
    const auto& operand = test_case.inputs[i];
    types.push_back(operand ? std::optional(operand->type) : std::nullopt);
    if (operand && operand->constant) constants |= 1ull << i;
  }
  Problem problem = make_problem(op, std::move(types), test_case.attributes);
  problem.constant_inputs = constants;
  problem.target = &target;
  return problem;
}

inline bool is_product(OpKind op) {
  return op == OpKind::linear || op == OpKind::matmul || op == OpKind::dual_linear || op == OpKind::scaled_mm ||
         op == OpKind::grouped_linear || op == OpKind::conv || op == OpKind::conv_transpose;
}

/// A program and the first case that needs it.
struct CaseProgram {
  cuda::Program program;
  std::string case_name;
};

/// The programs of all cases that a kernel does not decline, each once, in the order of the cases.
inline std::vector<CaseProgram> programs_of(const Kernel& kernel, const Target& target) {
  std::vector<CaseProgram> list;
  std::set<cuda::Program> seen;
  std::set<DType> with_epilogue;
  const OpDefinition& op = all_operators()[static_cast<std::size_t>(kernel.op)];
  for (const Case& test_case : op.cases()) {
    const Problem problem = problem_of(op, test_case, target);
    std::vector<Region> regions{problem};
    if (kernel.fuses && problem.input(0).dtype == DType::f32 && problem.input(0).rank() > 0)
      regions.insert(regions.end(), {with_norm(problem, false), with_norm(problem, true)});
    // What may follow a product, in one case for each type of its result.
    const TensorType& y = problem.outputs[0];
    if (kernel.fuses && is_product(kernel.op) && dtypes::real.contains(y.dtype) && !kernel.declines(problem) &&
        with_epilogue.insert(y.dtype).second)
      regions.push_back(followed(problem, scaled_residual(y)));
    for (const Region& region : regions) {
      if (kernel.declines(region)) continue;
      for (cuda::Program& program : kernel.programs(region))
        if (seen.insert(program).second) list.push_back({std::move(program), test_case.name});
    }
  }
  return list;
}

/// The programs of every configuration that a kernel has for the first case that it takes, each once.
inline std::vector<CaseProgram> programs_of_configs(const Kernel& kernel, const Target& target) {
  std::vector<CaseProgram> list;
  std::set<cuda::Program> seen;
  for (const Case& test_case : definition(kernel.op).cases()) {
    const Region region = problem_of(definition(kernel.op), test_case, target);
    if (kernel.declines(region)) continue;
    for (const Config& config : kernel.configs(region))
      for (cuda::Program& program : kernel.programs(region, config))
        if (seen.insert(program).second)
          list.push_back({std::move(program), fmt::format("{}, {}", test_case.name, config.to_string())});
    break;
  }
  return list;
}

}  // namespace cermet
