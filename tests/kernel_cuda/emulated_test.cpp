// Some cases of CUDA kernels, run by the interpreter of PTX: at once and in order; late, in random order and with a
// search for races.
#include "tests/kernel_cuda/device_case.hpp"
#include "tests/kernel_cuda/kernel_named.hpp"

namespace cermet {
namespace {

/// A case of a kernel's operator, or every one that it takes.
struct EmulatedCase {
  OpKind op;
  const char* kernel;
  const char* recipe = "";
};

class Emulated : public testing::TestWithParam<EmulatedCase> {};

void run_emulated(const Kernel& kernel, const Case& recipe, bool whole) {
  CaseData data = make_case_data(definition(kernel.op), recipe);
  const std::unique_ptr<Device> null = make_null_device(90);
  data.problem.target = null->target();
  if (whole && kernel.declines(data.problem)) return;
  const Expected expected = run_reference(data);
  for (const emulator::Mode& mode : {emulator::Mode{}, emulator::Mode{true, 1, true}}) {
    TestDevice device(mode);
    data.problem.target = device.device->target();
    ASSERT_EQ(kernel.declines(data.problem), std::nullopt) << kernel.name << ", " << recipe.name;
    std::vector<RecordedLaunch> launches;
    EXPECT_EQ(run_on_device(data, expected, kernel, 0, device.queue(), device.pool, &launches), "")
        << kernel.name << ", " << recipe.name << (mode.late ? ", late, in random order, looking for races" : "");
    for (const RecordedLaunch& launch : launches) EXPECT_TRUE(whole || !launch.fallback) << launch.program;
    EXPECT_TRUE(whole || !launches.empty());
  }
}

TEST_P(Emulated, ComputesWhatTheReferenceDoes) {
#ifndef CERMET_HAS_CUDA_PLUGIN
  GTEST_SKIP() << "no compiler of CUDA programs";
#endif
  const EmulatedCase& c = GetParam();
  int ran = 0;
  for (const Case& recipe : definition(c.op).cases()) {
    if (*c.recipe && recipe.name != c.recipe) continue;
    run_emulated(kernel_named(c.op, c.kernel), recipe, !*c.recipe);
    ++ran;
  }
  EXPECT_GT(ran, 0) << c.recipe;
}

std::string name_of_test(const testing::TestParamInfo<EmulatedCase>& test) {
  std::string name = fmt::format("{}_{}", test.param.kernel, *test.param.recipe ? test.param.recipe : "all");
  std::ranges::replace(name, '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, Emulated,
    testing::Values(EmulatedCase{OpKind::rms_norm, "rowwise.rms_norm", "bf16_h4096"},
                    EmulatedCase{OpKind::silu_and_mul, "pointwise.silu_and_mul", "f32_f700"},
                    EmulatedCase{OpKind::linear, "gemv.linear", "bf16_bf16_m1"},
                    EmulatedCase{OpKind::linear, "gemm.linear.hopper", "router"},
                    EmulatedCase{OpKind::incre_flash_attention, "attention.decode", "tiles_lse_bf16"},
                    EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged", "tiles_odd_bf16"},
                    EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged_tma", "copies_jumps_f16"},
                    EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged_tma", "copies_d192"},
                    EmulatedCase{OpKind::incre_flash_attention, "attention.prefill_paged_tma", "copies_freed"},
                    EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged_wide", "copies_wide_jumps_bf16"},
                    EmulatedCase{OpKind::incre_flash_attention, "attention.prefill_paged_f8", "columns_jumps"},
                    EmulatedCase{OpKind::incre_flash_attention, "attention.prefill_paged_f8", "columns_d256"},
                    EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged_hopper", "tiles_window_bf16"}),
    name_of_test);

INSTANTIATE_TEST_SUITE_P(LongKernels, Emulated,
                         testing::Values(EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged"},
                                         EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged_hopper"},
                                         EmulatedCase{OpKind::flash_attention, "attention.batched_hopper"},
                                         EmulatedCase{OpKind::flash_attention, "attention.batched_short"},
                                         EmulatedCase{OpKind::incre_flash_attention, "attention.decode"},
                                         EmulatedCase{OpKind::incre_flash_attention, "attention.prefill_paged"},
                                         EmulatedCase{OpKind::incre_flash_attention, "attention.prefill_paged_hopper"},
                                         EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged_tma"},
                                         EmulatedCase{OpKind::incre_flash_attention, "attention.prefill_paged_tma"},
                                         EmulatedCase{OpKind::flash_attention, "attention.prefill_ragged_wide"},
                                         EmulatedCase{OpKind::incre_flash_attention, "attention.prefill_paged_wide"},
                                         EmulatedCase{OpKind::incre_flash_attention, "attention.prefill_paged_f8"},
                                         EmulatedCase{OpKind::linear, "gemm.linear.hopper"},
                                         EmulatedCase{OpKind::linear, "gemm.linear.stream"},
                                         EmulatedCase{OpKind::dual_linear, "gemm.dual_linear.hopper"},
                                         EmulatedCase{OpKind::grouped_linear, "gemm.grouped_linear.hopper"},
                                         EmulatedCase{OpKind::scaled_mm, "gemm.scaled_mm.hopper"},
                                         EmulatedCase{OpKind::conv, "conv.hopper"},
                                         EmulatedCase{OpKind::cumsum, "scan.cumsum_tiled"},
                                         EmulatedCase{OpKind::moe, "moe.mixture"}),
                         name_of_test);

}  // namespace
}  // namespace cermet
