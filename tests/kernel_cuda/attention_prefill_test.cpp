// Attention of many queries with mma.sync: which cases its programs take on which cards, every configuration of wide
// heads, and values that are the first columns of the keys.
#include "op/operands.hpp"
#include "op/schema/operator.hpp"
#include "select/select.hpp"
#include "tests/kernel_cuda/device_case.hpp"
#include "tests/support/case_problem.hpp"

namespace cermet::attention_prefill_test {
namespace {

namespace paged = op::incre_flash_attention;

const Kernel& kernel_named(OpKind op) {
  const char* name = op == OpKind::incre_flash_attention ? "attention.prefill_paged" : "attention.prefill_ragged";
  const auto kernels = cuda::kernels_of(op);
  return **std::ranges::find(kernels, name, &Kernel::name);
}

/// Cases that are written for tiles, except those that only decode.
std::vector<Case> tile_cases(OpKind op) {
  std::vector<Case> list;
  for (Case& c : definition(op).cases())
    if (c.name.starts_with(op == OpKind::incre_flash_attention ? "tiles_prefill" : "tiles_"))
      list.push_back(std::move(c));
  return list;
}

Case case_named(OpKind op, std::string_view name) {
  for (Case& c : tile_cases(op))
    if (c.name == name) return c;
  ADD_FAILURE() << "no case " << name;
  return {};
}

TEST(PrefillTiles, TakeEveryCaseOnEveryCardThatHasTheTypeAndTheMemory) {
  for (const OpKind op : {OpKind::flash_attention, OpKind::incre_flash_attention}) {
    const std::vector<Case> cases = tile_cases(op);
    EXPECT_GE(cases.size(), op == OpKind::flash_attention ? 25u : 45u);
    for (const int compute_capability : {75, 80, 86, 89, 90}) {
      const auto device = make_null_device(compute_capability);
      for (const Case& c : cases) {
        const Decline reason = kernel_named(op).declines(case_problem(op, c, device->target()));
        if (compute_capability > 75) {
          EXPECT_EQ(reason, std::nullopt) << c.name << " on " << compute_capability;
        } else if (reason) {
          EXPECT_TRUE(reason->find("bf16 needs compute capability 8.0") != std::string::npos ||
                      reason->find("shared memory") != std::string::npos)
              << c.name << ": " << *reason;
        }
      }
    }
  }
}

TEST(PrefillTiles, RunTheirProgram) {
  for (const OpKind op : {OpKind::flash_attention, OpKind::incre_flash_attention})
    for (const Case& c : tile_cases(op)) {
      NullLaunches null(case_problem(op, c), kernel_named(op));
      const std::vector<RecordedLaunch> launches = null.launch(null.inputs(), null.outputs());
      ASSERT_EQ(launches.size(), 1u) << c.name;
      EXPECT_EQ(launches[0].program, "attention/prefill") << c.name;
      EXPECT_EQ(launches[0].index, 0u) << c.name;
    }
}

TEST(PrefillTiles, RunAProgramOfTheirOwnForValuesInKeys) {
  constexpr OpKind op = OpKind::incre_flash_attention;
  for (const char* name : {"tiles_prefill_mla_bf16", "tiles_prefill_mla_i8_token", "tiles_prefill_512_f16"}) {
    NullLaunches null(case_problem(op, case_named(op, name)), kernel_named(op));
    std::vector<TensorView> inputs = null.inputs();
    const TensorView &k = inputs[paged::k_cache], apart = inputs[paged::v_cache];
    inputs[paged::v_cache] = TensorView(k.data, k.dtype, apart.shape, k.strides);
    EXPECT_EQ(null.launch(inputs, null.outputs()).at(0).index, 1u) << name;
    inputs[paged::v_cache].data = static_cast<std::byte*>(k.data) + 32;  // other columns
    EXPECT_EQ(null.launch(inputs, null.outputs()).at(0).index, 0u) << name;
  }
}

TEST(PrefillTiles, AgreeWithTheReferenceWhereValuesAreInKeys) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  constexpr OpKind op = OpKind::incre_flash_attention;
  for (const Case& c : tile_cases(op)) {
    if (c.name.find("_mla_") == std::string::npos) continue;
    CaseData data = make_case_data(definition(op), c);
    data.problem.target = gpu.device->target();
    if (kernel_named(op).declines(data.problem)) continue;
    const TensorView& k = data.inputs[paged::k_cache];
    TensorView& v = data.inputs[paged::v_cache];
    v = TensorView(k.data, k.dtype, v.shape, k.strides);
    std::vector<RecordedLaunch> launches;
    EXPECT_EQ(run_on_device(data, run_reference(data), kernel_named(op), 0, gpu.queue(), gpu.pool, &launches), "")
        << c.name;
    ASSERT_EQ(launches.size(), 1u) << c.name;
    EXPECT_EQ(launches[0].index, 1u) << c.name;
  }
}

TEST(PrefillTiles, AgreeWithTheReferenceInEveryConfiguration) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  constexpr OpKind op = OpKind::incre_flash_attention;
  const Kernel& kernel = kernel_named(op);
  struct Run {
    CaseData data;
    std::vector<Config> configs;
  };
  std::vector<Run> runs;
  std::vector<cuda::Program> programs;
  for (const char* name : {"tiles_prefill_256_bf16", "tiles_prefill_512_f16", "tiles_prefill_256_i8_token",
                           "tiles_prefill_f16_f8_e4m3_head"}) {
    CaseData data = make_case_data(definition(op), case_named(op, name));
    data.problem.target = gpu.device->target();
    std::vector<Config> configs = kernel.configs(data.problem);
    EXPECT_GE(configs.size(), 3u) << name;
    configs.push_back({{"warp_rows", 16}, {"keys", 16}, {"row_warps", 1}, {"stages", 3}});
    for (const Config& config : configs)
      for (cuda::Program& program : kernel.programs(data.problem, config)) programs.push_back(std::move(program));
    runs.push_back({std::move(data), std::move(configs)});
  }
  gpu.programs->prepare(programs);  // in parallel
  for (const Run& run : runs) {
    const Expected expected = run_reference(run.data);
    for (const Config& config : run.configs)
      EXPECT_EQ(run_case_on_device(run.data, expected, kernel, gpu.queue(), gpu.pool, {.config = config}), "")
          << run.data.problem.to_string() << " " << config.to_string();
  }
}

}  // namespace
}  // namespace cermet::attention_prefill_test
