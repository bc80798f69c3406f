// GEMMs whose thread blocks compute several tiles, on the GPU.
#include "kernel/cuda/device/gemm/hopper.hpp"
#include "op/schema/operator.hpp"
#include "select/select.hpp"
#include "tests/kernel_cuda/device_case.hpp"
#include "tests/kernel_cuda/operands.hpp"
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

INSTANTIATE_TEST_SUITE_P(Products, Persistent, testing::ValuesIn(persistent_cases()), [](const auto& test) {
  return fmt::format("{}_{}", definition(test.param.op).name, test.param.recipe.name);
});

/// What configurations may ask for beside the kernels' own tiles: results of two and four bytes, tails in rows, columns
/// and reduction, rings that go round.
TEST(HopperTiles, OfEveryWidthAgreeWithTheReference) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  if (gpu.device->target()->compute_capability != 90) GTEST_SKIP() << "the Hopper products need compute capability 9.0";
  const std::pair<OpKind, Case> cases[] = {
      {OpKind::linear,
       {"bf16", {real(DType::bf16, {150, 712}), weight(DType::bf16, {1256, 712}), real(DType::bf16, {1256})}}},
      {OpKind::linear, {"f16_f32", {real(DType::f16, {150, 712}), weight(DType::f16, {1256, 712})}, to("f32")}},
      {OpKind::scaled_mm,
       {"i8", {codes({150, 1424}), weight(DType::i8, {1256, 1424}), scale({150}), scale({1256})}, to("bf16")}}};
  for (const auto& [op, recipe] : cases) {
    CaseData data = make_case_data(definition(op), recipe);
    data.problem.target = gpu.device->target();
    const Expected expected = run_reference(data);
    const Kernel& kernel = *choose_by_name(data.problem, fmt::format("gemm.{}.hopper", definition(op).name), "").kernel;
    std::vector<Config> tiles;
    for (const Config& point : space_of(kernel, data.problem).points())
      if (point.at("stages") == 3 && point.find("raster").value_or(gemm::hopper_raster) == gemm::hopper_raster)
        tiles.push_back(point);
    EXPECT_GE(tiles.size(), 15u);
    std::vector<cuda::Program> programs;
    for (const Config& tile : tiles)
      std::ranges::move(kernel.programs(data.problem, tile), std::back_inserter(programs));
    gpu.programs->prepare(programs);
    for (const Config& tile : tiles)
      EXPECT_EQ(run_case_on_device(data, expected, kernel, gpu.queue(), gpu.pool, {.padding = 8, .config = tile}), "")
          << recipe.name << ", " << tile.to_string();
  }
}

}  // namespace
}  // namespace cermet
