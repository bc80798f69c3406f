// One program of every CUDA kernel on three architectures; tests/jit/long compiles the programs of all cases on all.
#include "tests/jit/architectures.hpp"

#include <algorithm>

#include "tests/support/conv_regions.hpp"
#include "tests/support/decode_regions.hpp"

namespace cermet {
namespace {

class Architectures : public testing::TestWithParam<int> {};

TEST_P(Architectures, AProgramOfItsKernelsCompiles) {
  if (!no_toolchain().empty()) GTEST_SKIP() << no_toolchain();
  const std::unique_ptr<Device> device = make_null_device(GetParam());
  std::vector<CaseProgram> chosen;
  std::size_t index = 0;
  for (const Kernel* kernel : cuda::all_kernels()) {
    if (!in_share(GetParam(), index++)) continue;
    std::vector<CaseProgram> all = programs_of(*kernel, *device->target());
    // Another case on each architecture, so that together they cover more.
    if (!all.empty()) chosen.push_back(all[static_cast<std::size_t>(GetParam()) * 7 % all.size()]);
  }
  EXPECT_FALSE(chosen.empty());
  expect_compiles(chosen, *device->target());
}

INSTANTIATE_TEST_SUITE_P(Of, Architectures, testing::ValuesIn(compute_capabilities),
                         [](const auto& test) { return "sm_" + std::to_string(test.param); });

TEST(Architectures, GatesWithAScaleAndAnOffsetForEachColumnDoNotSpillOnTheOldest) {
  if (!no_toolchain().empty()) GTEST_SKIP() << no_toolchain();
  const std::unique_ptr<Device> device = make_null_device(75);
  std::vector<CaseProgram> list;
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const std::int64_t columns : {1024, 6144, 14336}) {
      const TensorType x{dtype, {64, 2 * columns}}, of_columns{DType::f32, {columns}};
      Problem problem = make_problem(definition(OpKind::silu_and_mul_quant), {x, {}, of_columns, of_columns}, {});
      problem.target = device->target();
      for (const Kernel* kernel : cuda::kernels_of(OpKind::silu_and_mul_quant))
        for (cuda::Program& program : kernel->programs(problem))
          list.push_back({std::move(program), problem.to_string()});
    }
  EXPECT_GE(list.size(), 6u);
  expect_compiles(list, *device->target());
}

TEST(Architectures, EveryKernelTakesSomeCaseOnTheLatest) {
  const std::unique_ptr<Device> device = make_null_device(90);
  std::vector<NamedRegion> regions =
      decode_regions(device->target());  // of kernels that take no operator alone; compiled in regions_test.cpp
  for (NamedRegion& region : squeezed_regions(device->target())) regions.push_back(std::move(region));
  for (NamedRegion& region : gated_regions(device->target())) regions.push_back(std::move(region));
  const std::unique_ptr<Device> compact = make_null_device(90);
  compact->set_compact_weights(true);
  for (NamedRegion& region : bf16_row_regions(compact->target())) regions.push_back(std::move(region));
  for (const Kernel* kernel : cuda::all_kernels()) {
    if (kernel->communicates) continue;  // it has no program, and takes no case, of which each is one process's
    const auto taken = [&](const NamedRegion& named) {
      return named.region.problem().op->kind == kernel->op && !kernel->declines(named.region);
    };
    EXPECT_TRUE(std::ranges::any_of(regions, taken) || !programs_of(*kernel, *device->target()).empty())
        << kernel->name << " declines every case";
  }
}

}  // namespace
}  // namespace cermet
