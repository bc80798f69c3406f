// Launches as records: what a plan keeps, what an executable plans, and which launches of it must stay in order.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "runtime/overlap.hpp"
#include "runtime/plan_text.hpp"
#include "tests/model/plugin.hpp"
#include "tests/runtime/graph_harness.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

alignas(64) std::byte memory[4096];

ByteRange bytes(std::int64_t from, std::int64_t count) { return {memory + from, count}; }

/// A plan of calls; each reads and writes one range.
Plan plan_of(std::initializer_list<std::pair<ByteRange, ByteRange>> calls) {
  Plan plan;
  plan.want_ranges(true);
  for (const auto& [read, written] : calls) {
    plan.add_call();
    plan.declare({&read, 1}, {&written, 1});
  }
  return plan;
}

std::string text_of(const std::vector<LaunchOrder>& order) {
  std::string text;
  for (const LaunchOrder& pair : order) text += fmt::format("{}<{} ", pair.before, pair.after);
  return text;
}

TEST(Plan, KeepsParametersAndRangesOfLaunches) {
  Plan plan;
  const std::array<std::byte, 3> small{std::byte{1}, std::byte{2}, std::byte{3}};
  const std::array<std::byte, 100> large{std::byte{9}};
  Launch launch;
  launch.items = 7;
  plan.begin_step(4);
  plan.add_program(launch, small);
  plan.add_program(launch, large);
  plan.add_fill(memory, 1, 16);
  launch.shape.cluster = 2;
  plan.add_program(launch, small);
  ASSERT_EQ(plan.launches().size(), 4u);
  EXPECT_EQ(plan.launches()[0].step, 4u);
  EXPECT_TRUE(plan.launches()[1].is_linkable());
  EXPECT_FALSE(plan.launches()[2].is_linkable());
  EXPECT_FALSE(plan.launches()[3].is_linkable()) << "it has clusters";
  EXPECT_EQ(plan.parameters(plan.launches()[0]).size(), 3u);
  EXPECT_EQ(plan.parameters(plan.launches()[0])[2], std::byte{3}) << "kept where the memory has grown since";
  EXPECT_EQ(plan.parameters(plan.launches()[1])[0], std::byte{9});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(plan.parameters(plan.launches()[1]).data()) % 64, 0u);
  EXPECT_EQ(plan.writes(plan.launches()[2])[0], bytes(0, 16));
  plan.clear();
  EXPECT_TRUE(plan.launches().empty());
}

TEST(Plan, ViewsCoverTheBytesBetweenTheirRows) {
  EXPECT_EQ(byte_range(TensorView(memory, DType::f32, {3, 4}, {10, 1})), bytes(0, (2 * 10 + 4) * 4));
  EXPECT_EQ(byte_range(TensorView(memory, DType::bf16, {0, 4})).bytes, 0);
  EXPECT_EQ(byte_range(TensorView()).bytes, 0);
}

TEST(Overlap, FollowsFromTheBytes) {
  const Plan plan = plan_of({
      {bytes(0, 8), bytes(100, 8)},    // 0
      {bytes(0, 8), bytes(200, 8)},    // 1: only reads what 0 reads
      {bytes(104, 8), bytes(300, 8)},  // 2: reads what 0 writes
      {bytes(300, 8), bytes(100, 4)},  // 3: reads what 2 writes, and overwrites what 0 wrote
      {bytes(200, 8), bytes(0, 8)},    // 4: overwrites what 0 and 1 read
      {bytes(108, 4), bytes(400, 4)},  // 5: beside what 0 writes
  });
  const std::vector<LaunchOrder> order = dependencies_of(plan);
  EXPECT_EQ(text_of(order), "0<2 2<3 1<4 0<4 ");
  EXPECT_FALSE(find_overlap(plan, order));
  const std::vector<LaunchOrder> chain{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}};
  EXPECT_FALSE(find_overlap(plan, chain));
  for (std::size_t left_out = 0; left_out < order.size(); ++left_out) {
    std::vector<LaunchOrder> fewer = order;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(left_out));
    const auto found = find_overlap(plan, fewer);
    ASSERT_TRUE(found) << left_out;
    EXPECT_EQ(found->second, order[left_out].after);
    EXPECT_TRUE(found->written.overlaps(found->touched));
  }
  EXPECT_EQ(error_text([&] {
              find_overlap(plan, std::vector<LaunchOrder>{{3, 2}});
            }),
            "order: expected launches before later ones of 6, found 3 before 2");
}

TEST(ExecutablePlan, OfTheHostCallsEveryKernelOnce) {
  GraphRunner runner("dense");
  EXPECT_EQ(error_text([&] { runner.executable.plan(); }),
            "plan of graph 'dense': expected a run before it is read, found none");
  for (const Batch& batch : batches()) {
    runner.run(batch);
    const Plan& plan = runner.executable.plan();
    if (batch.inputs.at("ids").view.elements() > 0) {
      EXPECT_EQ(plan.launches().size(), runner.executable.steps().size());
    } else {
      EXPECT_LT(plan.launches().size(), runner.executable.steps().size());
    }
    std::vector<LaunchOrder> chain;
    for (std::uint32_t i = 0; i < plan.launches().size(); ++i) {
      EXPECT_EQ(plan.launches()[i].kind, Launch::Kind::call);
      EXPECT_FALSE(plan.writes(plan.launches()[i]).empty());
      if (i > 0) chain.push_back({i - 1, i});
    }
    EXPECT_FALSE(find_overlap(plan, chain));
    EXPECT_FALSE(find_overlap(plan, dependencies_of(plan)));
  }
}

/// b is made where a dead value was, which another launch still reads: only the memory keeps the two apart.
TEST(ExecutablePlan, MemoryThatIsUsedAgainKeepsLaunchesInOrder) {
  const Context context({"cpu", 1});
  WeightStore weights(load_by_name, context.pool());
  Executable executable =
      compile(parse_graph(R"(graph reuse {
    input %x : f32[8, 64]
    input %i : i32[8]
    %a = gather(%x, %i) : f32[8, 64]
    %side = gather(%a, %i) : f32[8, 64]
    %b = gather(%x, %i) {axis = 0} : f32[8, 64]
    %c = gather(%b, %i) : f32[8, 64]
    output side = %side
    output c = %c
  })"),
              context.device(), weights, context.pool(), {.maximum = {}, .skip = {"common-subexpressions"}});
  const OwnedTensor x(DType::f32, {8, 64});
  OwnedTensor i(DType::i32, {8});
  for (std::int64_t row = 0; row < 8; ++row) store(i.view, row, 7.0 - static_cast<double>(row));
  executable.bind("x", x.view);
  executable.bind("i", i.view);
  executable.run({});
  const Plan& plan = executable.plan();
  EXPECT_EQ(text_of(dependencies_of(plan)), "0<1 1<2 2<3 ");
  const std::vector<LaunchOrder> of_data{{0, 1}, {2, 3}};
  const std::optional<Overlap> found = find_overlap(plan, of_data);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first, 0u);
  EXPECT_EQ(found->second, 2u);
}

/// A kernel of three launches: a fill, a pass for the range of all values, and one that quantizes.
TEST(ExecutablePlan, KernelsSayWhatEachOfTheirLaunchesTouches) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  const Context context({"null:sm_90", 1});
  WeightStore weights(load_by_name, context.pool(), context.queue());
  CompileOptions options;
  options.queue = context.queue();
  Executable executable =
      compile(parse_graph("graph g {\n input %x : f32[8, 64]\n %q, %s = dynamic_quant(%x) {granularity = \"tensor\"} : "
                          "i8[8, 64], f32[]\n output q = %q\n output s = %s\n}"),
              context.device(), weights, context.pool(), options);
  executable.bind("x", TensorView(memory, DType::f32, {8, 64}));
  executable.run({});
  const Plan& plan = executable.plan();
  ASSERT_EQ(plan.launches().size(), 3u);
  const Launch &fill = plan.launches()[0], &range = plan.launches()[1], &quantize = plan.launches()[2];
  EXPECT_EQ(fill.kind, Launch::Kind::fill);
  EXPECT_TRUE(plan.reads(fill).empty());
  EXPECT_TRUE(range.declared);
  ASSERT_EQ(plan.writes(range).size(), 1u);
  EXPECT_EQ(plan.writes(range)[0], plan.writes(fill)[0]);
  EXPECT_EQ(plan.reads(range)[0].begin, memory);
  EXPECT_EQ(plan.reads(range)[0].bytes, 8 * 64 * 4);
  EXPECT_TRUE(quantize.declared);
  EXPECT_EQ(plan.writes(quantize)[0].bytes, 8 * 64);
  EXPECT_EQ(plan.writes(quantize)[1].bytes, 4);
  EXPECT_EQ(text_of(dependencies_of(plan)), "0<1 1<2 ");
  const std::vector<PlannedLaunch> launches = planned_launches(executable);
  EXPECT_EQ(launches[0].program, "fill");
  EXPECT_TRUE(launches[0].work) << "the first stands for the kernel";
  EXPECT_FALSE(launches[1].work);
}

TEST(ExecutablePlan, OfAGpuIsTheGoldenText) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  for (const std::string name : {"dense", "experts"}) {
    GraphRunner runner(name, {}, "null:sm_90");
    const std::vector<Batch> list = batches();
    runner.run(list[0]);
    const std::vector<PlannedLaunch> launches = planned_launches(runner.executable);
    EXPECT_FALSE(find_overlap(runner.executable.plan(), dependencies_of(runner.executable.plan())));
    expect_golden("runtime/golden/" + name + ".plan", plan_table(launches, runner.executable.steps()));
  }
}

}  // namespace
}  // namespace cermet
