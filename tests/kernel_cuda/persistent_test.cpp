// GEMMs whose thread blocks compute several tiles, on the GPU.
#include "op/operator.hpp"
#include "tests/kernel_cuda/device_case.hpp"
#include "tests/kernel_cuda/product_cases.hpp"

namespace cermet {
namespace {

class Persistent : public testing::TestWithParam<PersistentCase> {};

TEST_P(Persistent, EveryRoundAgreesWithTheReference) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  if (gpu.device->target()->compute_capability != 90) GTEST_SKIP() << "the Hopper products need compute capability 9.0";
  const PersistentCase& c = GetParam();
  const auto kernels = enabled_kernels_of(c.op);
  const Kernel& kernel = **std::ranges::find(kernels, c.kernel, &Kernel::name);
  CaseData data = make_case_data(definition(c.op), c.recipe);
  data.problem.target = gpu.device->target();
  ASSERT_EQ(kernel.declines(data.problem), std::nullopt);
  std::vector<RecordedLaunch> launches;
  EXPECT_EQ(run_on_device(data, run_reference(data), kernel, 8, gpu.queue(), gpu.pool, &launches), "");
  ASSERT_FALSE(launches.empty());
  EXPECT_EQ(launches.back().program, "gemm/hopper");
  EXPECT_GE(launches.back().rounds(), 2) << launches.back().items << " items, " << launches.back().blocks << " blocks";
}

INSTANTIATE_TEST_SUITE_P(Products, Persistent, testing::ValuesIn(persistent_cases()),
                         [](const auto& info) { return fmt::format("{}_{}", definition(info.param.op).name, info.param.recipe.name); });

}  // namespace
}  // namespace cermet
