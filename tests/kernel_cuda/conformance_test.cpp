// Every CUDA kernel against its operator's reference, over the operator's own cases, on the GPU.
#include "kernel/cuda/kernels.hpp"
#include "op/operator.hpp"
#include "tests/kernel_cuda/device_case.hpp"

namespace cermet {
namespace {

class CudaConformance : public testing::TestWithParam<const OpDefinition*> {};

TEST_P(CudaConformance, EveryCase) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const OpDefinition& op = *GetParam();
  std::vector<CaseData> cases;
  std::vector<cuda::Program> programs;
  const std::vector<Case> recipes = op.cases();
  for (const Case& recipe : recipes) {
    CaseData& data = cases.emplace_back(make_case_data(op, recipe));
    data.problem.target = gpu.device->target();
    for (const Kernel* kernel : enabled_kernels_of(op.kind)) {
      if (kernel->declines(data.problem)) continue;
      for (cuda::Program& program : kernel->programs(data.problem)) programs.push_back(std::move(program));
    }
  }
  gpu.programs->prepare(programs);  // in parallel
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const Expected expected = run_reference(cases[c]);
    int taken = 0;
    for (const Kernel* kernel : enabled_kernels_of(op.kind)) {
      if (kernel->declines(cases[c].problem)) continue;
      ++taken;
      for (const std::int64_t padding : {0, 3, 8})
        EXPECT_EQ(run_on_device(cases[c], expected, *kernel, padding, gpu.queue(), gpu.pool), "")
            << op.name << " case " << recipes[c].name << ", kernel " << kernel->name << ", rows " << padding << " elements apart";
    }
    EXPECT_GT(taken, 0) << op.name << " case " << recipes[c].name << ": every kernel declines";
  }
}

std::vector<const OpDefinition*> all() {
  std::vector<const OpDefinition*> list;
  for (const OpDefinition& op : all_operators()) list.push_back(&op);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Operators, CudaConformance, testing::ValuesIn(all()), [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace cermet
