// The programs of every CUDA kernel, case, configuration and architecture.
#include "tests/jit/architectures.hpp"

#include <algorithm>

namespace cermet {
namespace {

class EveryProgram : public testing::TestWithParam<std::tuple<int, const Kernel*>> {};

TEST_P(EveryProgram, Compiles) {
  if (!no_toolchain().empty()) GTEST_SKIP() << no_toolchain();
  const auto& [compute_capability, kernel] = GetParam();
  const std::unique_ptr<Device> device = make_null_device(compute_capability);
  expect_compiles(programs_of(*kernel, *device->target()), *device->target());
}

TEST_P(EveryProgram, OfEveryConfigurationCompiles) {
  if (!no_toolchain().empty()) GTEST_SKIP() << no_toolchain();
  const auto& [compute_capability, kernel] = GetParam();
  const std::unique_ptr<Device> device = make_null_device(compute_capability);
  expect_compiles(programs_of_configs(*kernel, *device->target()), *device->target());
}

std::vector<const Kernel*> kernels() {
  std::vector<const Kernel*> list;
  std::ranges::copy_if(cuda::all_kernels(), std::back_inserter(list),
                       [](const Kernel* kernel) { return !kernel->communicates; });
  return list;
}

std::string name_of(const testing::TestParamInfo<std::tuple<int, const Kernel*>>& info) {
  std::string name = "sm_" + std::to_string(std::get<0>(info.param)) + "_" + std::string(std::get<1>(info.param)->name);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Of, EveryProgram,
                         testing::Combine(testing::ValuesIn(compute_capabilities), testing::ValuesIn(kernels())),
                         name_of);

}  // namespace
}  // namespace cermet
