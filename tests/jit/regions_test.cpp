// Regions of several operators: chosen for every architecture, and compiled; the fast tests compile a part for each.
#include "base/function_ref.hpp"
#include "kernel/decline.hpp"
#include "tests/jit/architectures.hpp"
#include "tests/support/conv_regions.hpp"
#include "tests/support/product_regions.hpp"
#include "tests/support/rotated_regions.hpp"
#include "tests/support/row_regions.hpp"

namespace cermet {
namespace {

class Regions : public testing::TestWithParam<int> {};
class LongRegions : public testing::TestWithParam<int> {};

/// Every region is taken by a kernel of this family, not those for rare element types or scales, and by no other.
void expect_taken_and_compiled(const std::vector<NamedRegion>& regions, const Target& target, std::string_view family,
                               FunctionRef<bool(std::size_t region)> compiled) {
  std::vector<CaseProgram> list;
  std::size_t index = 0;
  for (const auto& [name, region] : regions) {
    const bool compile = compiled(index++);
    int taken = 0;
    for (const Kernel* kernel : cuda::kernels_of(region.problem().op->kind)) {
      const Decline decline = decline_of(*kernel, region);
      const bool is_rare = kernel->name.ends_with(".plain") || kernel->name == "rowwise.dynamic_quant.general";
      EXPECT_NE(decline.has_value(), kernel->name.starts_with(family) && !is_rare)
          << name << ", " << kernel->name << ": " << decline.value_or("takes it");
      if (decline) continue;
      ++taken;
      for (cuda::Program& program : kernel->programs(region))
        if (compile) list.push_back({std::move(program), name});
    }
    EXPECT_EQ(taken, 1) << name;
  }
  if (no_toolchain().empty()) expect_compiles(list, target);
}

void expect_of_elementwise_operators(int compute_capability, FunctionRef<bool(std::size_t region)> compiled) {
  const std::unique_ptr<Device> device = make_null_device(compute_capability);
  expect_taken_and_compiled(pointwise_regions(device->target()), *device->target(), "pointwise.", compiled);
}

void expect_of_row_reductions(int compute_capability, FunctionRef<bool(std::size_t region)> compiled) {
  const std::unique_ptr<Device> device = make_null_device(compute_capability);
  expect_taken_and_compiled(row_regions(device->target()), *device->target(), "rowwise.", compiled);
}

void expect_of_rotated_heads(int compute_capability, FunctionRef<bool(std::size_t region)> compiled) {
  const std::unique_ptr<Device> device = make_null_device(compute_capability);
  std::vector<CaseProgram> list;
  std::size_t index = 0;
  for (const auto& [name, region] : rotated_regions(device->target())) {
    std::string takers;
    for (const Kernel* kernel : cuda::kernels_of(region.problem().op->kind)) {
      if (decline_of(*kernel, region)) continue;
      takers += kernel->name;
      if (compiled(index))
        for (cuda::Program& program : kernel->programs(region)) list.push_back({std::move(program), name});
    }
    ++index;
    const bool scaled = region.problem().op->kind == OpKind::scaled_mm;
    EXPECT_EQ(takers, region.anchor == 0 ? (scaled ? "gemv.scaled_mm" : "gemv.linear")
                      : scaled           ? "gemv.front_scaled_mm"
                                         : "gemv.norm_linear")
        << name;
  }
  if (no_toolchain().empty()) expect_compiles(list, *device->target());
}

/// Those that every family takes after its products; the long tests compile the programs of all of them, the fast ones
/// those of the kernel that is chosen.
void expect_of_products(int compute_capability, bool all_kernels, FunctionRef<bool(std::size_t region)> compiled) {
  const std::unique_ptr<Device> device = make_null_device(compute_capability);
  std::vector<CaseProgram> list;
  std::size_t index = 0;
  for (const ProductRegion& entry : product_regions()) {
    const Region region = entry.region(device->target());
    int taken = 0;
    const bool compile = compiled(index++);
    for (const Kernel* kernel : cuda::kernels_of(region.problem().op->kind)) {
      if (decline_of(*kernel, region)) continue;
      if (taken++ > 0 && !all_kernels) continue;
      if (compile)
        for (cuda::Program& program : kernel->programs(region))
          if (all_kernels || !program.fallback) list.push_back({std::move(program), entry.name});
    }
    EXPECT_GT(taken, 0) << entry.name;
  }
  if (no_toolchain().empty()) expect_compiles(list, *device->target());
}

TEST_P(Regions, OfProducts) {
  expect_of_products(GetParam(), false, [](std::size_t region) { return in_share(GetParam(), region); });
}

TEST_P(LongRegions, OfProducts) {
  expect_of_products(GetParam(), true, [](std::size_t) { return true; });
}

TEST_P(Regions, OfRotatedHeads) {
  expect_of_rotated_heads(GetParam(), [](std::size_t region) { return in_share(GetParam(), region); });
}

TEST(Regions, OfRotatedHeadsOfSeveralTokens) {
  const std::unique_ptr<Device> device = make_null_device(90);
  std::vector<CaseProgram> list;
  for (const auto& [name, region] : rotated_rows_regions(device->target())) {
    std::string takers;
    for (const Kernel* kernel : cuda::kernels_of(region.problem().op->kind)) {
      if (decline_of(*kernel, region)) continue;
      takers += kernel->name;
      for (cuda::Program& program : kernel->programs(region)) list.push_back({std::move(program), name});
    }
    EXPECT_EQ(takers, region.problem().op->kind == OpKind::scaled_mm ? "gemm.scaled_mm.stream" : "gemm.linear.stream")
        << name;
  }
  if (no_toolchain().empty()) expect_compiles(list, *device->target());
}

TEST_P(Regions, OfElementwiseOperators) {
  expect_of_elementwise_operators(GetParam(), [](std::size_t region) { return in_share(GetParam(), region); });
}

TEST_P(Regions, OfRowReductions) {
  expect_of_row_reductions(GetParam(), [](std::size_t region) { return in_share(GetParam(), region); });
}

/// One of so many of those that are taken.
void expect_of_compact_rows(std::size_t every) {
  const std::unique_ptr<Device> device = make_null_device(90);
  device->set_compact_weights(true);
  std::vector<CaseProgram> list;
  std::size_t taken = 0;
  for (const auto& regions : {bf16_row_regions(device->target()), rotated_regions(device->target())})
    for (const auto& [name, region] : regions)
      for (const Kernel* kernel : cuda::kernels_of(region.problem().op->kind)) {
        if (!kernel->name.starts_with("gemv.compact_") || decline_of(*kernel, region) || taken++ % every != 0) continue;
        for (const Config& config : kernel->configs(region))
          for (cuda::Program& program : kernel->programs(region, config)) list.push_back({std::move(program), name});
      }
  EXPECT_GT(taken, 50u);
  if (no_toolchain().empty()) expect_compiles(list, *device->target());
}
TEST(CompactRegions, OfOwnConfigurations) { expect_of_compact_rows(8); }
TEST(LongCompactRegions, OfAllConfigurations) { expect_of_compact_rows(1); }

/// Of the architecture that they are for: weights stream through shared memory.
TEST(Regions, OfDecodeSteps) {
  const std::unique_ptr<Device> device = make_null_device(90);
  std::size_t index = 0;
  std::vector<CaseProgram> list;
  std::vector<NamedRegion> regions = decode_regions(device->target());
  std::ranges::copy(unweighted_regions(device->target()), std::back_inserter(regions));
  for (const auto& [name, region] : regions) {
    const Kernel* taken = nullptr;
    for (const Kernel* kernel : cuda::kernels_of(region.problem().op->kind))
      if (taken == nullptr && !decline_of(*kernel, region)) taken = kernel;
    ASSERT_NE(taken, nullptr) << name;
    EXPECT_TRUE(taken->name.starts_with("gemv.")) << name;
    if (index++ % 3 == 0)
      for (cuda::Program& program : taken->programs(region)) list.push_back({std::move(program), name});
  }
  if (no_toolchain().empty()) expect_compiles(list, *device->target());
}

/// One kernel takes each, but for weights that the shared memory of an architecture does not hold, and gates before the
/// products of Hopper alone.
TEST_P(Regions, OfConvolutions) {
  const std::unique_ptr<Device> device = make_null_device(GetParam());
  std::vector<CaseProgram> list;
  std::vector<NamedRegion> regions = squeezed_regions(device->target());
  if (GetParam() == 90) std::ranges::copy(gated_regions(device->target()), std::back_inserter(regions));
  std::size_t index = 0;
  for (const auto& [name, region] : regions) {
    int taken = 0;
    for (const Kernel* kernel : cuda::kernels_of(OpKind::conv)) {
      if (decline_of(*kernel, region)) continue;
      ++taken;
      for (cuda::Program& program : kernel->programs(region))
        if (in_share(GetParam(), index)) list.push_back({std::move(program), name});
    }
    const bool is_large = name == "wide" || name == "without_a_mean";
    EXPECT_TRUE(taken == 1 || (taken == 0 && is_large && GetParam() < 90)) << name << ", taken by " << taken;
    ++index;
  }
  if (no_toolchain().empty()) expect_compiles(list, *device->target());
}

TEST_P(LongRegions, OfRotatedHeads) {
  expect_of_rotated_heads(GetParam(), [](std::size_t) { return true; });
}

TEST_P(LongRegions, OfElementwiseOperators) {
  expect_of_elementwise_operators(GetParam(), [](std::size_t) { return true; });
}

TEST_P(LongRegions, OfRowReductions) {
  expect_of_row_reductions(GetParam(), [](std::size_t) { return true; });
}

std::string name_of(const testing::TestParamInfo<int>& info) { return "sm_" + std::to_string(info.param); }

INSTANTIATE_TEST_SUITE_P(Of, Regions, testing::ValuesIn(compute_capabilities), name_of);
INSTANTIATE_TEST_SUITE_P(Of, LongRegions, testing::ValuesIn(compute_capabilities), name_of);

}  // namespace
}  // namespace cermet
