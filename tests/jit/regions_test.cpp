// Regions of several operators: chosen, and compiled for every architecture.
#include "kernel/decline.hpp"
#include "tests/jit/architectures.hpp"
#include "tests/support/row_regions.hpp"

namespace cermet {
namespace {

class Regions : public testing::TestWithParam<int> {};

/// Every region is taken by a kernel of this family, and by no other.
void expect_taken_and_compiled(const std::vector<NamedRegion>& regions, const Target& target, std::string_view family) {
  std::vector<CaseProgram> list;
  for (const auto& [name, region] : regions) {
    int taken = 0;
    for (const Kernel* kernel : cuda::kernels_of(region.problem().op->kind)) {
      const Decline decline = decline_of(*kernel, region);
      EXPECT_NE(decline.has_value(), kernel->name.starts_with(family)) << name << ", " << kernel->name << ": " << decline.value_or("takes it");
      if (decline) continue;
      ++taken;
      for (cuda::Program& program : kernel->programs(region)) list.push_back({std::move(program), name});
    }
    EXPECT_EQ(taken, 1) << name;
  }
  if (no_toolchain().empty()) expect_compiles(list, target);
}

TEST_P(Regions, OfElementwiseOperators) {
  const std::unique_ptr<Device> device = make_null_device(GetParam());
  expect_taken_and_compiled(pointwise_regions(device->target()), *device->target(), "pointwise.");
}

TEST_P(Regions, OfRowReductions) {
  const std::unique_ptr<Device> device = make_null_device(GetParam());
  expect_taken_and_compiled(row_regions(device->target()), *device->target(), "rowwise.");
}

INSTANTIATE_TEST_SUITE_P(Of, Regions, testing::ValuesIn(compute_capabilities), [](const auto& info) { return "sm_" + std::to_string(info.param); });

}  // namespace
}  // namespace cermet
