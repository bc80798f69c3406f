// Every configuration that a kernel offers can be bound and launched, on the null device; and what forces one.
#include <gtest/gtest.h>

#include <set>

#include "kernel/cuda/kernels.hpp"
#include "kernel/forced.hpp"
#include "op/schema/operator.hpp"
#include "select/select.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/support/case_problem.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

Problem product(std::int64_t m, std::int64_t n, std::int64_t k, const Target* target) {
  Problem problem =
      make_problem(definition(OpKind::linear), {TensorType{DType::bf16, {m, k}}, TensorType{DType::bf16, {n, k}}}, {});
  problem.constant_inputs = 2;
  problem.target = target;
  return problem;
}

TEST(Configs, EveryOneOfEveryKernelLaunches) {
  const auto device = make_null_device(90);
  std::set<std::string> with_several;
  for (const Kernel* kernel : cuda::all_kernels())
    for (const Case& recipe : definition(kernel->op).cases()) {
      const Problem problem = case_problem(kernel->op, recipe, device->target());
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
  for (const char* kernel :
       {"gemm.linear.hopper", "gemm.grouped_linear.hopper", "gemm.linear.tensor", "gemm.matmul.general", "gemv.linear",
        "gemv.scaled_mm", "attention.decode", "attention.prefill_ragged_hopper", "attention.prefill_paged",
        "attention.general_paged", "sampling.argmax", "sampling.sample", "reduce.topk"})
    EXPECT_TRUE(with_several.contains(kernel)) << kernel;
}

TEST(Configs, AForcedTileIsTheOnlyOneCompiled) {
  const auto device = make_null_device(90);
  const Choice choice =
      choose_by_name(product(512, 4096, 4096, device->target()), "gemm.linear.hopper", "tile_m=64 tile_n=32 stages=4");
  const auto programs = choice.kernel->programs(product(512, 4096, 4096, device->target()), choice.config);
  ASSERT_EQ(std::ranges::count_if(programs, [](const cuda::Program& p) { return !p.fallback; }), 1);
  EXPECT_NE(programs[0].task.find(".block_m = 64, .block_n = 32, .stages = 4"), std::string::npos) << programs[0].task;
}

TEST(Configs, NamesThatDoNotExistAreAnsweredWithThoseThatDo) {
  const auto device = make_null_device(90);
  const Region region(product(1, 4096, 4096, device->target()));
  const auto error = [&](const char* kernel, const char* config) {
    return error_text([&] { choose_by_name(region, kernel, config); });
  };
  EXPECT_EQ(error("gemv.linear", "stream=2"), "--config: gemv.linear: stream: expected one of 0, 1, found 2");
  EXPECT_EQ(error("gemv.linear", "streams=1"),
            "--config: gemv.linear: expected a field of ring_kib, stream, found \"streams\"");
  EXPECT_EQ(error("cublaslt.linear", "tile=64"),
            "--config: cublaslt.linear: expected default, because it runs in one way here, found \"tile\"");
  EXPECT_NE(error("gemm.linear.hopper", "tile_m=64,stages=4,tile_n=192")
                .find("--config: gemm.linear.hopper: expected one of default; "),
            std::string::npos);
  EXPECT_NE(error_text([&] { choose_by_name(region, "gem", ""); }).find("--kernel: expected one of gemv.norm_linear"),
            std::string::npos);
  EXPECT_NE(
      error_text([&] { choose_by_name(region, "gemv.norm_linear", ""); }).find("expects something before the product"),
      std::string::npos);
}

TEST(Configs, OfDecodingAttentionAreWhatIsCompiled) {
  const auto device = make_null_device(90);
  const auto cache = TensorType{DType::bf16, {1024, 8, 16, 128}};
  Problem problem = make_problem(definition(OpKind::incre_flash_attention),
                                 {TensorType{DType::bf16, {4, 32, 128}}, cache, cache, TensorType{DType::i32, {4, 256}},
                                  TensorType{DType::i32, {4}}},
                                 {});
  problem.target = device->target();
  const auto tasks = [&](const char* config) {
    const Choice choice = choose_by_name(problem, "attention.decode", config);
    std::vector<std::string> list;
    for (const cuda::Program& program : choice.kernel->programs(problem, choice.config))
      if (!program.fallback) list.push_back(program.task);
    return list;
  };
  EXPECT_EQ(tasks("default").size(), 2u) << "without clusters, and in those that four sequences get";
  EXPECT_EQ(tasks("default"), tasks("rows=8 blocks=2 clusters=1"));
  EXPECT_EQ(tasks("rows=8,blocks=2,clusters=0"), std::vector{tasks("default")[0]});
  for (const std::string& task : tasks("rows=16")) EXPECT_NE(task.find(".rows = 16"), std::string::npos) << task;
  EXPECT_NE(tasks("default")[0].find(".whole = true"), std::string::npos) << tasks("default")[0];
  EXPECT_EQ(tasks("default")[1].find(".whole"), std::string::npos)
      << "a cluster has its span anyway: " << tasks("default")[1];
  EXPECT_EQ(tasks("whole=0"), tasks("rows=8 blocks=2 clusters=1 whole=0")) << "otherwise as by default";
  for (const char* config : {"whole=0", "rows=8 blocks=1 clusters=0 least=1", "rows=8 blocks=1 clusters=0 pieces=2"})
    for (const std::string& task : tasks(config))
      EXPECT_EQ(task.find(".whole"), std::string::npos) << config << ": " << task;
  const ConfigSpace space = space_of(*choose_by_name(problem, "attention.decode", "default").kernel, problem);
  EXPECT_EQ(space.fault_of(parse_config("rows=8 blocks=1 clusters=0 whole=0")), std::nullopt);
  EXPECT_NE(space.fault_of(parse_config("rows=8 blocks=1 clusters=0 least=1 whole=0")), std::nullopt)
      << "the same as without";
  EXPECT_EQ(error_text([&] { tasks("rows=12"); }), "--config: attention.decode: rows: expected one of 8, 16, found 12");
  const Choice one = choose_by_name(problem, "attention.decode", "blocks=1"),
               two = choose_by_name(problem, "attention.decode", "blocks=2");
  EXPECT_LT(one.kernel->workspace(problem, one.config, 1), two.kernel->workspace(problem, two.config, 1));
}

/// Where there are maybe more spans than blocks, or more rows of a sequence than a tile has, no block has a whole one.
TEST(Configs, OfDecodingAttentionHaveWholeSpansWhereTheyCan) {
  const auto device = make_null_device(90);
  const auto has_whole = [&](std::int64_t sequences, std::int64_t heads, std::int64_t kv_heads, DType q) {
    const auto cache = TensorType{DType::bf16, {1024, kv_heads, 16, 128}};
    Problem problem = make_problem(definition(OpKind::incre_flash_attention),
                                   {TensorType{q, {sequences, heads, 128}}, cache, cache,
                                    TensorType{DType::i32, {sequences, 256}}, TensorType{DType::i32, {sequences}}},
                                   {});
    problem.target = device->target();
    const Choice choice = choose_by_name(problem, "attention.decode", "default");
    return choice.kernel->programs(problem, choice.config).front().task.find(".whole = true") != std::string::npos;
  };
  EXPECT_TRUE(has_whole(64, 32, 4, DType::bf16));
  EXPECT_TRUE(has_whole(66, 32, 4, DType::bf16));
  EXPECT_FALSE(has_whole(67, 32, 4, DType::bf16)) << "268 spans, 264 blocks";
  EXPECT_TRUE(has_whole(64, 64, 4, DType::f32)) << "16 rows of two parts";
  EXPECT_FALSE(has_whole(64, 128, 4, DType::bf16)) << "two tiles of rows";
}

/// Of operators that no record, or one of few calls, covers, the first kernel's own way is taken for every case.
TEST(Configs, OwnChoicesStayWhereNobodyMeasured) {
  for (const int compute_capability : {75, 80, 89, 90, 100}) {
    const auto device = make_null_device(compute_capability);
    for (const OpKind op : {OpKind::flash_attention, OpKind::incre_flash_attention, OpKind::argmax, OpKind::sample,
                            OpKind::topk, OpKind::topk_gating, OpKind::reduce_sum, OpKind::scatter})
      for (const Case& recipe : definition(op).cases()) {
        const Problem problem = case_problem(op, recipe, device->target());
        const Selection selection = explain_selection(problem);
        const auto first =
            std::ranges::find_if(selection.candidates, [](const Candidate& candidate) { return !candidate.decline; });
        if (first == selection.candidates.end()) continue;
        EXPECT_EQ(selection.choice.kernel->name, first->kernel->name) << recipe.name << " on " << compute_capability;
        EXPECT_EQ(selection.choice.config.to_string(), "default") << recipe.name << " on " << compute_capability;
      }
  }
}

/// Fields that are not named are the kernel's to choose: the cheapest.
TEST(Configs, SomeFieldsAreEnough) {
  const auto device = make_null_device(90);
  const Region region(product(512, 4096, 4096, device->target()));
  const Choice choice = choose_by_name(region, "gemm.linear.hopper", "tile_m=64");
  EXPECT_EQ(choice.config.at("tile_m"), 64);
  for (const Config& config : choice.kernel->configs(region))
    if (config.find("tile_m") == 64) {
      EXPECT_LE(choice.kernel->cost(region, choice.config, limits_of(device->target())) * 0.8,
                choice.kernel->cost(region, config, limits_of(device->target())));
    }
  EXPECT_TRUE(choose_by_name(region, "gemm.linear.hopper", "default").config.empty());
}

TEST(Configs, ForcedOnesAreParsedOnce) {
  const ForcedConfigs forced(" gemv.linear : stream=0 ; gemm.linear.hopper:tile_m=64,tile_n=32;", "--config");
  EXPECT_EQ(forced.find("gemv.linear"), "stream=0");
  EXPECT_EQ(forced.find("gemm.linear.hopper"), "tile_m=64,tile_n=32");
  EXPECT_EQ(forced.find("gemm.linear"), std::nullopt);
  const auto error = [](const char* text) {
    return error_text([&] { require_known_kernels(ForcedConfigs(text, "--config")); });
  };
  EXPECT_EQ(error("stream=0"), "--config: expected `kernel: field=1 ...` between semicolons, found \"stream=0\"");
  EXPECT_EQ(error("gemv.linear: stream"),
            "--config: gemv.linear: configuration: expected words like tile_m=128, found \"stream\"");
  EXPECT_EQ(error("gemv.linear: stream=0; gemv.linear: stream=1"),
            "--config: expected gemv.linear once, found it again in \"gemv.linear: stream=1\"");
  EXPECT_EQ(error("gemv.liner: stream=0"),
            "--config: expected one of the kernels gemv.combine, gemv.compact_dual_linear, gemv.compact_linear, "
            "gemv.compact_norm_dual_linear, "
            "gemv.compact_norm_linear, gemv.dual_linear, gemv.front_grouped_linear, gemv.front_scaled_mm, "
            "gemv.grouped_linear, gemv.linear, "
            "gemv.norm_dual_linear, gemv.norm_linear, gemv.scaled_mm, "
            "found \"gemv.liner\"");
  EXPECT_NE(error("gemw.linear: stream=0").find("expected a kernel of a family like attention, "), std::string::npos)
      << error("gemw.linear: stream=0");
}

/// What is forced for a test.
struct Forced {
  explicit Forced(const char* text) { force_configs(ForcedConfigs(text, "--config")); }
  ~Forced() { force_configs({}); }
  Forced(const Forced&) = delete;
  Forced& operator=(const Forced&) = delete;
};

/// Tasks of the chosen kernel of a mixture of 8 experts.
std::string mixture_tasks(const Target* target) {
  const auto bf16 = [](std::initializer_list<Dim> dims) { return TensorType{DType::bf16, dims}; };
  Problem problem = make_problem(
      definition(OpKind::moe), {bf16({64, 256}), bf16({8, 256}), bf16({8, 512, 256}), bf16({8, 256, 256})}, {{"k", 2}});
  problem.constant_inputs = 0b1110;
  problem.target = target;
  const Choice choice = select_kernel(problem);
  std::string tasks;
  for (const cuda::Program& program : choice.kernel->programs(problem, choice.config)) tasks += program.task + "\n";
  NullLaunches null(problem, *choice.kernel, choice.config);
  EXPECT_FALSE(null.launch(null.inputs(), null.outputs()).empty());
  return tasks;
}

TEST(Configs, ForcedOnesReachThePartsOfAMixture) {
  const auto device = make_null_device(90);
  const std::string own = mixture_tasks(device->target());
  const auto has = [](const std::string& tasks, std::string_view part) {
    return tasks.find(part) != std::string::npos;
  };
  constexpr std::string_view grouped = ".grouped = true, .offsets = ";  // of HopperConfig
  EXPECT_TRUE(has(own, grouped));
  EXPECT_FALSE(has(own, ".block_m = 64, .block_n = 32, .stages = 4"));
  {
    const Forced forced("gemm.grouped_linear.hopper: tile_m=64 tile_n=32 stages=4");
    const std::string tasks = mixture_tasks(device->target());
    EXPECT_TRUE(has(tasks, ".block_m = 64, .block_n = 32, .stages = 4")) << tasks;
    EXPECT_FALSE(has(tasks, ".block_m = 128")) << tasks;
  }
  {
    const Forced forced("gemm.grouped_linear.general: default");
    EXPECT_FALSE(has(mixture_tasks(device->target()), grouped)) << "another kernel than the first that takes it";
  }
  const Forced forced("gemm.grouped_linear.hopper: tile_m=65");
  EXPECT_NE(error_text([&] {
              mixture_tasks(device->target());
            }).find("--config: gemm.grouped_linear.hopper: tile_m: expected one of 64, "),
            std::string::npos);
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
  const double reading = 2.0 * 4096 * 4096 * 2 / limits.read_bytes_per_second;
  EXPECT_NEAR(kernel.cost(region, limits), reading, 0.2 * reading);
}

}  // namespace
}  // namespace cermet
