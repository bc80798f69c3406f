// An operator's own cases for a GPU, with all that its kernels compile for them made ready in parallel.
#pragma once

#include <vector>

#include "tests/kernel_cuda/device_case.hpp"

namespace cermet {

struct CompiledCases {
  std::vector<Case> recipes;
  std::vector<CaseData> data;  ///< of each recipe

  CompiledCases(const OpDefinition& op, TestDevice& gpu) : recipes(op.cases()) {
    std::erase_if(recipes, [](const Case& c) { return !is_chosen(c.name, "CERMET_TEST_CASE"); });
    std::vector<cuda::Program> programs;
    for (const Case& recipe : recipes) {
      CaseData& made = data.emplace_back(make_case_data(op, recipe));
      made.problem.target = gpu.device->target();
      for (const Kernel* kernel : enabled_kernels_of(op.kind))
        if (!kernel->declines(made.problem))
          for (cuda::Program& program : kernel->programs(made.problem)) programs.push_back(std::move(program));
    }
    gpu.programs->prepare(programs);
  }
};

}  // namespace cermet
