// The programs that measure a GPU's limits compile for every architecture.
#include "kernel/cuda/limits.hpp"

#include "tests/jit/architectures.hpp"

namespace cermet {
namespace {

class LimitPrograms : public testing::TestWithParam<int> {};

TEST_P(LimitPrograms, Compile) {
  if (!no_toolchain().empty()) GTEST_SKIP() << no_toolchain();
  const std::unique_ptr<Device> device = make_null_device(GetParam());
  std::vector<CaseProgram> list;
  for (cuda::Program& program : cuda::limit_programs(*device->target())) list.push_back({std::move(program), "limits"});
  expect_compiles(list, *device->target());
}

INSTANTIATE_TEST_SUITE_P(Of, LimitPrograms, testing::ValuesIn(compute_capabilities),
                         [](const auto& test) { return "sm_" + std::to_string(test.param); });

TEST(LimitPrograms, NothingIsMeasuredWhereNothingIsComputed) {
  const std::unique_ptr<Device> device = make_null_device(90);
  const auto stream = device->make_stream();
  EXPECT_THROW(cuda::measure_limits(*device, *stream, {}, 0.1), Error);
}

}  // namespace
}  // namespace cermet
