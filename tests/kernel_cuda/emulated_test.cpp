// Some cases of CUDA kernels, run by the interpreter of PTX: at once and in order, late and in random order.
#include "tests/kernel_cuda/device_case.hpp"
#include "tests/kernel_cuda/kernel_named.hpp"

namespace cermet {
namespace {

struct EmulatedCase {
  OpKind op;
  const char *kernel, *recipe;
};

class Emulated : public testing::TestWithParam<EmulatedCase> {};

TEST_P(Emulated, ComputesWhatTheReferenceDoes) {
#ifndef CERMET_HAS_CUDA_PLUGIN
  GTEST_SKIP() << "no compiler of CUDA programs";
#endif
  const EmulatedCase& c = GetParam();
  const std::vector<Case> recipes = definition(c.op).cases();
  const auto recipe = std::ranges::find(recipes, std::string(c.recipe), &Case::name);
  ASSERT_NE(recipe, recipes.end()) << c.recipe;
  CaseData data = make_case_data(definition(c.op), *recipe);
  const Expected expected = run_reference(data);
  for (const emulator::Mode& mode : {emulator::Mode{}, emulator::Mode{true, 1}}) {
    TestDevice device(mode);
    data.problem.target = device.device->target();
    const Kernel& kernel = kernel_named(c.op, c.kernel);
    ASSERT_EQ(kernel.declines(data.problem), std::nullopt) << c.kernel << ", " << c.recipe;
    std::vector<RecordedLaunch> launches;
    EXPECT_EQ(run_on_device(data, expected, kernel, 0, device.queue(), device.pool, &launches), "")
        << c.kernel << ", " << c.recipe << (mode.late ? ", late and in random order" : "");
    ASSERT_FALSE(launches.empty());
    for (const RecordedLaunch& launch : launches) EXPECT_FALSE(launch.fallback) << launch.program;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, Emulated,
    testing::Values(EmulatedCase{OpKind::rms_norm, "rowwise.rms_norm", "bf16_h4096"},
                    EmulatedCase{OpKind::silu_and_mul, "pointwise.silu_and_mul", "f32_f700"},
                    EmulatedCase{OpKind::linear, "gemv.linear", "bf16_bf16_m1"},
                    EmulatedCase{OpKind::linear, "gemm.linear.hopper", "router"},
                    EmulatedCase{OpKind::incre_flash_attention, "attention.decode", "tiles_lse_bf16"},
                    EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged", "tiles_odd_bf16"},
                    EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged_hopper", "tiles_window_bf16"},
                    EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged_tma", "copies_jumps_f16"},
                    EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged_tma", "copies_d192"},
                    EmulatedCase{OpKind::incre_flash_attention, "attention.prefill_paged_tma", "copies_freed"}),
    [](const auto& test) {
      std::string name = fmt::format("{}_{}", test.param.kernel, test.param.recipe);
      std::ranges::replace(name, '.', '_');
      return name;
    });

}  // namespace
}  // namespace cermet
