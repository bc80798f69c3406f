// Every CUDA kernel against its operator's reference, over the operator's own cases, on the GPU.
#include "kernel/cuda/kernels.hpp"
#include "op/mixture.hpp"
#include "op/schema/operator.hpp"
#include "tests/kernel_cuda/compiled_cases.hpp"

namespace cermet {
namespace {

/// What the CPU alone computes: experts that ranks share and that are quantized or round what they multiply.
bool is_for_cpus(const Problem& problem) {
  return problem.op->kind == OpKind::ep_moe &&
         (is_quantized_weight(problem, mixture_gate_up) ||
          hidden_type(problem.attributes, problem.input(mixture_down).dtype) != DType::f32);
}

class CudaConformance : public testing::TestWithParam<const OpDefinition*> {};

TEST_P(CudaConformance, EveryCase) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const OpDefinition& op = *GetParam();
  const CompiledCases cases(op, gpu);
  for (std::size_t c = 0; c < cases.data.size(); ++c) {
    const Expected expected = run_reference(cases.data[c]);
    int taken = 0;
    for (const Kernel* kernel : enabled_kernels_of(op.kind)) {
      if (kernel->declines(cases.data[c].problem)) continue;
      ++taken;
      for (const std::int64_t padding : {0, 3, 8})
        EXPECT_EQ(run_on_device(cases.data[c], expected, *kernel, padding, gpu.queue(), gpu.pool), "")
            << op.name << " case " << cases.recipes[c].name << ", kernel " << kernel->name << ", rows " << padding
            << " elements apart";
    }
    EXPECT_TRUE(std::getenv("CERMET_TEST_KERNEL") || (taken == 0) == is_for_cpus(cases.data[c].problem))
        << op.name << " case " << cases.recipes[c].name << ": " << taken << " kernels take it";
  }
}

std::vector<const OpDefinition*> all() {
  std::vector<const OpDefinition*> list;
  for (const OpDefinition& op : all_operators()) list.push_back(&op);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Operators, CudaConformance, testing::ValuesIn(all()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace cermet
