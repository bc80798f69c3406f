// Every configuration that a kernel offers can be bound and launched, on the null device; and what forces one.
#include <gtest/gtest.h>

#include <set>

#include "kernel/cuda/kernels.hpp"
#include "op/operator.hpp"
#include "select/select.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

Problem product(std::int64_t m, std::int64_t n, std::int64_t k, const Target* target) {
  Problem problem = make_problem(definition(OpKind::linear), {TensorType{DType::bf16, {m, k}}, TensorType{DType::bf16, {n, k}}}, {});
  problem.constant_inputs = 2;
  problem.target = target;
  return problem;
}

TEST(Configs, EveryOneOfEveryKernelLaunches) {
  const auto device = make_null_device(90);
  std::set<std::string> with_several;
  for (const Kernel* kernel : cuda::all_kernels())
    for (const Case& recipe : definition(kernel->op).cases()) {
      std::vector<std::optional<TensorType>> types;
      for (const auto& input : recipe.inputs) types.push_back(input ? std::optional(input->type) : std::nullopt);
      Problem problem = make_problem(definition(kernel->op), std::move(types), recipe.attributes);
      problem.target = device->target();
      if (kernel->declines(problem)) continue;
      const std::vector<Config> configs = kernel->configs(problem);
      ASSERT_FALSE(configs.empty()) << kernel->name;
      EXPECT_TRUE(configs.front().empty()) << kernel->name << ": its own choice comes first";
      bool own_launches = false;
      for (const Config& config : configs) {
        SCOPED_TRACE(fmt::format("{} case {}, {}", kernel->name, recipe.name, config.to_string()));
        EXPECT_EQ(parse_config(config.to_string()), config);
        EXPECT_EQ(std::ranges::count(configs, config), 1);
        if (kernel->cost) {
          EXPECT_GT(kernel->cost(problem, config, limits_of(problem.target)), 0);
        }
        NullLaunches null(problem, *kernel, config);
        const bool launches = !null.launch(null.inputs(), null.outputs()).empty();
        if (config.empty()) own_launches = launches;
        EXPECT_EQ(launches, own_launches);
      }
      if (configs.size() > 1) with_several.insert(kernel->name);
    }
  for (const char* kernel : {"gemm.linear.hopper", "gemm.grouped_linear.hopper", "gemm.linear.tensor", "gemm.matmul.general", "gemv.linear", "gemv.scaled_mm"})
    EXPECT_TRUE(with_several.contains(kernel)) << kernel;
}

TEST(Configs, AForcedTileIsTheOnlyOneCompiled) {
  const auto device = make_null_device(90);
  const Choice choice = choose_by_name(product(512, 4096, 4096, device->target()), "gemm.linear.hopper", "tile_m=64 tile_n=32 stages=4");
  const auto programs = choice.kernel->programs(product(512, 4096, 4096, device->target()), choice.config);
  ASSERT_EQ(std::ranges::count_if(programs, [](const cuda::Program& p) { return !p.fallback; }), 1);
  EXPECT_NE(programs[0].task.find(".block_m = 64, .block_n = 32, .stages = 4"), std::string::npos) << programs[0].task;
}

TEST(Configs, NamesThatDoNotExistAreAnsweredWithThoseThatDo) {
  const auto device = make_null_device(90);
  const Region region(product(1, 4096, 4096, device->target()));
  EXPECT_NE(error_text([&] {
              choose_by_name(region, "gemv.linear", "stream=2");
            }).find(R"(expected a configuration of gemv.linear, one of default; stream=0; stream=1, found "stream=2")"),
            std::string::npos);
  EXPECT_NE(error_text([&] { choose_by_name(region, "gemv", ""); }).find("--kernel: expected one of gemv.norm_linear"), std::string::npos);
  EXPECT_NE(error_text([&] { choose_by_name(region, "gemv.norm_linear", ""); }).find("expects a normalization before it"), std::string::npos);
}

/// Limits are the device's: where the memory is slow, tiles that read less win.
TEST(Configs, CostsFollowTheLimits) {
  Target target = *make_null_device(90)->target();
  const Region region(product(4096, 4096, 4096, &target));
  const Kernel& kernel = *choose_by_name(region, "gemm.linear.hopper", "").kernel;
  DeviceLimits limits = limits_of(&target);
  const double seconds = kernel.cost(region, limits);
  EXPECT_NEAR(seconds, cost_of(region).operations / limits.bf16_operations_per_second, seconds / 2);
  limits.bf16_operations_per_second /= 4;
  EXPECT_GT(kernel.cost(region, limits), 2 * seconds);
  limits = limits_of(&target);
  limits.read_bytes_per_second /= 1000;
  EXPECT_NEAR(kernel.cost(region, limits), 2.0 * 4096 * 4096 * 2 / limits.read_bytes_per_second, seconds);
}

}  // namespace
}  // namespace cermet
