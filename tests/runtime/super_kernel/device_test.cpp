// Super-kernels on GPUs: what a region's launches need of each other, one kernel linked of them, and, where there is a GPU, the bits of launches one by one.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "device/cuda/plugin.hpp"
#include "device/dependency.hpp"
#include "runtime/session.hpp"
#include "runtime/super_kernel/device_region.hpp"
#include "runtime/super_kernel/joinable_choice.hpp"
#include "runtime/super_kernel/region.hpp"
#include "runtime/super_kernel/walk_cost.hpp"
#include "tests/model/plugin.hpp"
#include "tests/runtime/graph_harness.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

alignas(64) std::byte device_memory[1024];

ByteRange part(std::int64_t from, std::int64_t count) { return {device_memory + from, count}; }

using Needs = std::vector<std::vector<std::uint32_t>>;

TEST(DeviceRegion, NeedsFollowFromBytesWithoutWhatOthersImply) {
  Plan plan;
  plan.want_ranges(true);
  const auto launch = [&](ByteRange read, ByteRange written) {
    Launch program;
    program.items = 1;
    plan.add_program(program, {});
    plan.declare({&read, 1}, {&written, 1});
  };
  launch(part(0, 64), part(64, 64));     // outside of the region
  launch(part(64, 64), part(128, 64));   // 0
  launch(part(64, 64), part(192, 64));   // 1: a branch
  launch(part(128, 64), part(256, 64));  // 2: needs 0
  launch(part(192, 128), part(64, 64));  // 3: reads what 1 and 2 made, and writes what 0 and 1 read
  EXPECT_EQ(region_needs(plan, 1, 4), (Needs{{}, {}, {0}, {1, 2}}));
  EXPECT_EQ(region_needs(plan, 1, 4, true), (Needs{{}, {0}, {1}, {2}}));
}

const std::string step_text =
    "graph step {\n  input %x : f32[1, 512]\n  constant %w : bf16[1024, 512]\n  constant %v : bf16[512, 1024]\n  constant %g : f32[512]\n"
    "  %a = rms_norm(%x, %g) : f32[1, 512]  // layers.0.norm\n  %b = linear(%a, %w) : f32[1, 1024]  // layers.0.up\n"
    "  %c = gelu(%b) : f32[1, 1024]  // layers.0.act\n  %d = linear(%c, %v) : f32[1, 512]  // layers.0.down\n  %e = add(%d, %x) : f32[1, 512]  // layers.0\n"
    "  %f = rms_norm(%e, %g) : f32[1, 512]  // layers.1.norm\n  %h = linear(%f, %w) : f32[1, 1024]  // layers.1.up\n"
    "  %i = softmax(%h) : f32[1, 1024]  // layers.1.weights\n  %j = linear(%i, %v) : f32[1, 512]  // layers.1.down\n  output y = %j\n}\n";

const std::string int8_text =
    "graph step {\n  input %x : f32[1, 512]\n  constant %w : i8[1024, 512]\n  constant %t : f32[1024]\n  constant %v : i8[512, 1024]\n  constant %u : "
    "f32[512]\n"
    "  constant %g : f32[512]\n  %a, %m = rms_norm_quant(%x, %g) : i8[1, 512], f32[1]\n  %b = scaled_mm(%a, %w, %m, %t) : f32[1, 1024]\n"
    "  %c = gelu(%b) : f32[1, 1024]\n  %d, %n = dynamic_quant(%c) : i8[1, 1024], f32[1]\n  %e = scaled_mm(%d, %v, %n, %u) : f32[1, 512]\n"
    "  %f, %h, %o = add_rms_norm_quant(%e, %x, %g) : i8[1, 512], f32[1, 512], f32[1]\n  %i = scaled_mm(%f, %w, %o, %t) : f32[1, 1024]\n"
    "  %j, %p = dynamic_quant(%i) : i8[1, 1024], f32[1]\n  %k = scaled_mm(%j, %v, %p, %u) : f32[1, 512]\n  %y = add(%k, %h) : f32[1, 512]\n  output y = "
    "%y\n}\n";

/// Heads of a query between products, over 600 keys: blocks share the keys of each of two heads.
const std::string attention_text =
    "graph step {\n  input %x : f32[1, 512]\n  constant %w : bf16[512, 512]\n  constant %v : bf16[512, 512]\n  constant %k_cache : bf16[40, 2, 16, 64]\n"
    "  constant %v_cache : bf16[40, 2, 16, 64]\n  constant %pages : i32[1, 40]\n  constant %lengths : i32[1]\n"
    "  %a = linear(%x, %w) : f32[1, 512]\n  %q = reshape(%a) {shape = [0, 8, 64]} : f32[1, 8, 64]\n"
    "  %o = incre_flash_attention(%q, %k_cache, %v_cache, %pages, %lengths) : f32[1, 8, 64]\n  %f = reshape(%o) {shape = [0, 512]} : f32[1, 512]\n"
    "  %b = linear(%f, %v) : f32[1, 512]\n  %r = reshape(%b) {shape = [0, 8, 64]} : f32[1, 8, 64]\n"
    "  %s = incre_flash_attention(%r, %v_cache, %k_cache, %pages, %lengths) : f32[1, 8, 64]\n  %g = reshape(%s) {shape = [0, 512]} : f32[1, 512]\n"
    "  %y = linear(%g, %w) : f32[1, 512]\n  output y = %y\n}\n";

void load_attention(const std::string& name, std::int64_t slice, const TensorView& destination) {
  if (name == "pages")
    for (std::int64_t i = 0; i < 40; ++i) store(destination, i, static_cast<double>(39 - i));
  else if (name == "lengths") store(destination, 0, 600);
  else load_by_name(name, slice, destination);
}

/// The step on a device, with its input there.
struct Step {
  Context context;
  Session session;
  DeviceBuffer x;

  static SessionOptions options_of(const std::string& select, const std::string& options) {
    SessionOptions made;
    made.fusion.super_kernel = {select, options};
    return made;
  }
  Step(const std::string& device, const std::string& select, const std::string& options, const std::string& text = step_text)
      : context({device, 2}), session(parse_graph(text), context, text == attention_text ? load_attention : load_by_name, options_of(select, options)) {
    OwnedTensor values(DType::f32, {1, 512});
    fill_by_name("x", values.view);
    x = context.device().allocate(512 * 4);
    context.stream()->upload(x.data(), values.view.data, 512 * 4);
    context.stream()->synchronize();
    session.bind("x", {x.data(), DType::f32, {1, 512}});
  }
  std::vector<std::byte> run() {
    session.run();
    const TensorView y = session.host_output("y");
    return {y.as<std::byte>(), y.as<std::byte>() + dense_bytes(y.dtype, y.shape)};
  }
  /// Programs and names of the launches of the only region, to make it by hand.
  std::vector<cuda::Program> programs;
  std::vector<RegionLaunch> launches() {
    const Plan& plan = session.executable().plan();
    const SuperRegion& region = session.executable().super_kernels()->regions.at(0);
    programs.clear();
    for (std::size_t l = region.first_launch; l < region.end_launch; ++l) {
      const StepInfo& info = session.executable().steps()[plan.launches()[l].step];
      Choice choice = select_kernel(info.region);
      choose_joinable(info.region, choice);
      programs.push_back(choice.kernel->programs(info.region, choice.config).at(plan.launches()[l].program));
    }
    std::vector<RegionLaunch> list;
    for (std::size_t i = 0; i < programs.size(); ++i) list.push_back({&programs[i], fmt::format("launch {}", i)});
    return list;
  }
};

TEST(DeviceRegion, IsDeclinedWhereALossIsPredictedUnlessAskedFor) {
  EXPECT_FALSE(links_at_a_loss({}));
  for (const char* options : {"profile=1", "debug-sync-all=1", "width=132"}) EXPECT_TRUE(links_at_a_loss(SuperKernelOptions::parse(options))) << options;
}

TEST(WalkCost, AgreesWithTheDecodeStepThatWasMeasured) {
  // Llama 3.2 1B in bf16 on an H200: 84 launches, one after the other; 619.7 us for their bytes and products without boundaries.
  Needs needs(84);
  for (std::uint32_t i = 1; i < 84; ++i) needs[i] = {i - 1};
  Target target;
  target.compute_capability = 90;
  target.multiprocessors = 132;
  const DeviceLimits limits{.source = "H200", .clock_hz = 1.755e9, .read_bytes_per_second = 4.563e12};
  const WalkCost cost = walk_cost(needs, jit::walk_in_flight, limits, target);
  EXPECT_NEAR(cost.graph * 1e6 + 619.7, 755.7, 6);
  EXPECT_NEAR(cost.walk * 1e6 + 619.7, 824.6, 6);
  EXPECT_NEAR(cost.loss() * 1e6, 69, 1);
  const WalkCost more = walk_cost(needs, 2 * jit::walk_in_flight, limits, target);
  EXPECT_NEAR(more.walk - cost.walk, 83 * static_cast<double>(jit::walk_in_flight) * 132 / 4.563e12, 1e-9) << "a release waits for the bytes on their way";
  EXPECT_EQ(more.graph, cost.graph);
  EXPECT_EQ(walk_cost(Needs(3), jit::walk_in_flight, limits, target).loss(), 0) << "nobody waits";
}

TEST(DeviceRegion, AStepIsLinkedWithoutHardware) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  Step step("null:sm_90", "decode", "profile=1:strict-scope-check=abort");
  step.session.run();
  const std::vector<RegionLaunch> launches = step.launches();
  ASSERT_GE(launches.size(), 4u);
  const DeviceRegion region(step.session.executable().plan(), 0, launches, step.context.queue(), {});
  EXPECT_EQ(region.count(), launches.size());
  EXPECT_EQ(region.shape().pitch, 16384) << "the smallest stages of all configurations";
  EXPECT_GE(region.shape().stages, 10);
  EXPECT_EQ(region.shape().in_flight, 3);
}

/// Blocks of a walk that go on in any order. Each takes items b, b + blocks, .. of one launch after the other, waits for the launches that it needs, and
/// arrives once behind its own. Nothing where all end, and each item began when what it reads and overwrites was done.
std::string walk_in_any_order(const Plan& plan, std::uint32_t blocks, std::uint64_t seed, const Needs& needs) {
  const std::size_t count = needs.size();
  std::vector<std::uint32_t> at(blocks), arrivals(count);
  std::vector<std::vector<bool>> ended;
  for (const Launch& launch : plan.launches()) ended.emplace_back(launch.items);
  const auto arrives = [&](std::size_t l) { return std::min(plan.launches()[l].items, blocks); };
  std::mt19937_64 random(seed);
  for (std::vector<std::uint32_t> able;; able.clear()) {
    bool all = true;
    for (std::uint32_t b = 0; b < blocks; ++b) {
      all = all && at[b] == count;
      if (at[b] < count && std::ranges::all_of(needs[at[b]], [&](std::uint32_t need) { return arrivals[need] == arrives(need); })) able.push_back(b);
    }
    if (able.empty()) return all ? "" : "deadlock";
    const std::uint32_t b = able[random() % able.size()];
    const std::size_t l = at[b]++;
    for (std::uint32_t item = b; item < plan.launches()[l].items; item += blocks) {
      for (std::size_t before = 0; before < l; ++before)
        for (const ItemRange& range : items_before(plan, before, l, item))
          for (std::int64_t i = range.first; i < range.end; ++i)
            if (!ended[before][static_cast<std::size_t>(i)])
              return fmt::format("launch {} item {} began before item {} of launch {} had ended", l, item, i, before);
      ended[l][item] = true;
    }
    if (b < arrives(l)) ++arrivals[l];
  }
}

/// One row of int8: its launches join, and a walk of them holds. That the linked kernel computes the same is DeviceStep's.
TEST(DeviceRegion, AnInt8StepHoldsInAnyOrderOfBlocks) {
  Step step("null:sm_90", "decode", "profile=1:strict-scope-check=abort", int8_text);
  step.session.run();
  const SuperFormation& formation = *step.session.executable().super_kernels();
  const Plan& plan = step.session.executable().plan();
  ASSERT_EQ(formation.regions.size(), 1u);
  ASSERT_EQ(formation.regions[0].end_launch, plan.launches().size());
  ASSERT_GE(plan.launches().size(), 4u);
  Needs needs = region_needs(plan, 0, plan.launches().size());
  for (const std::uint32_t blocks : {132, 7, 1})
    for (std::uint64_t seed = 0; seed < 10; ++seed) EXPECT_EQ(walk_in_any_order(plan, blocks, seed, needs), "") << blocks << " blocks, seed " << seed;
  needs.back().clear();
  EXPECT_NE(walk_in_any_order(plan, 132, 1, needs), "") << "what a missing wait looks like";
}

/// Attention whose blocks form clusters gives way to one whose blocks meet in memory.
TEST(DeviceRegion, AttentionJoinsInPieces) {
  const auto device = make_null_device(90);
  const auto cache = TensorType{DType::bf16, {40, 8, 16, 64}};
  const auto program = [&](std::int64_t sequences) {
    Problem problem = make_problem(
        definition(OpKind::incre_flash_attention),
        {TensorType{DType::bf16, {sequences, 32, 64}}, cache, cache, TensorType{DType::i32, {sequences, 40}}, TensorType{DType::i32, {sequences}}}, {});
    problem.target = device->target();
    const Region region(problem);
    Choice choice = select_kernel(region);
    EXPECT_EQ(choice.kernel->name, "attention.decode");
    choose_joinable(region, choice);
    return choice.kernel->programs(region, choice.config).at(0);
  };
  const cuda::Program one = program(1);
  EXPECT_TRUE(one.header.ends_with("decode_pieces.cuh")) << one.header;
  EXPECT_NE(one.task.find(".ranks = 16"), std::string::npos) << one.task;
  EXPECT_EQ(one.meeting_bytes, 8 * (2 + 64) * 4) << "maxima, sums and outputs of eight rows";
  EXPECT_NE(program(4).task.find(".ranks = 4"), std::string::npos) << "a block of an SM each";
  const cuda::Program many = program(16);
  EXPECT_TRUE(many.header.ends_with("decode.cuh")) << "one block for each span: " << many.header;
  EXPECT_EQ(many.meeting_bytes, 0);
}

/// Compiling attention takes seconds.
TEST(LongDeviceRegion, AttentionInPiecesHoldsInAnyOrderOfBlocks) {
  Step step("null:sm_90", "decode", "profile=1:strict-scope-check=abort", attention_text);
  step.session.run();
  const SuperFormation& formation = *step.session.executable().super_kernels();
  const Plan& plan = step.session.executable().plan();
  ASSERT_EQ(formation.regions.size(), 1u);
  ASSERT_EQ(formation.regions[0].end_launch, plan.launches().size());
  EXPECT_EQ(std::ranges::count(plan.launches(), 2u * 16u, &Launch::items), 2) << "a span of each key-value head, 16 pieces";
  const Needs needs = region_needs(plan, 0, plan.launches().size());
  for (const std::uint32_t blocks : {132, 7, 1}) EXPECT_EQ(walk_in_any_order(plan, blocks, 5, needs), "") << blocks << " blocks";
}

/// Compiling and linking bodies of int8 takes seconds.
TEST(LongDeviceRegion, AnInt8StepIsLinkedWithoutHardware) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  Step step("null:sm_90", "decode", "profile=1:strict-scope-check=abort", int8_text);
  step.session.run();
  const std::vector<RegionLaunch> launches = step.launches();
  const DeviceRegion region(step.session.executable().plan(), 0, launches, step.context.queue(), {});
  EXPECT_EQ(region.count(), step.session.executable().plan().launches().size());
  EXPECT_GE(region.shape().stages, 2);
}

class DeviceStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = cuda::unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
    if (make_device("cuda")->target()->compute_capability != 90) GTEST_SKIP() << "super-kernels need compute capability 9.0";
  }
};

/// Run after run: launched one by one, captured, replayed.
TEST_F(DeviceStep, GivesTheBitsOfLaunchesOneByOne) {
  const std::vector<std::byte> expected = Step("cuda", "", "").run();
  for (const std::string options : {"", "debug-sync-all=1", "width=7", "width=1", "profile=1"})
    for (const std::string select : {"decode", "layer"}) {
      Step step("cuda", select, options);
      for (int run = 0; run < 100; ++run) ASSERT_EQ(step.run(), expected) << select << " " << options << ", run " << run;
    }
}

TEST_F(DeviceStep, GivesTheBitsOfLaunchesOneByOneOfInt8) {
  const std::vector<std::byte> expected = Step("cuda", "", "", int8_text).run();
  Step step("cuda", "decode", "width=132", int8_text);
  for (int run = 0; run < 100; ++run) ASSERT_EQ(step.run(), expected) << "run " << run;
}

/// The first run is launched one by one, with flags for the parts of attention; later ones meet in memory, with fewer blocks than items, too.
TEST_F(DeviceStep, GivesTheBitsOfLaunchesOneByOneOfAttention) {
  for (const std::string options : {"profile=1", "width=132", "width=20", "width=1", "debug-sync-all=1"}) {
    Step step("cuda", "decode", options, attention_text);
    const std::vector<std::byte> expected = step.run();
    for (int run = 0; run < 100; ++run) ASSERT_EQ(step.run(), expected) << options << ", run " << run;
  }
}

TEST_F(DeviceStep, AWaitThatNobodyEndsIsReportedAndTheNextRunIsRight) {
  Step step("cuda", "decode", "profile=1");
  const std::vector<std::byte> expected = step.run();
  const std::vector<RegionLaunch> launches = step.launches();
  Stream& stream = *step.context.stream();
  DeviceRegion region(step.session.executable().plan(), 0, launches, step.context.queue(), {.patience = 50'000'000});
  region.enqueue(stream);
  stream.synchronize();
  EXPECT_EQ(region.take_stuck(), "");
  const std::uint32_t poison = 0xffffff00u;  // as if blocks had not ended their part of launch 0 in many runs
  stream.upload(region.counter(0), &poison, 4);
  region.enqueue(stream);
  stream.synchronize();
  const std::string stuck = region.take_stuck();
  EXPECT_NE(stuck.find("waited 0.1 s for launch 0: expected "), std::string::npos) << stuck;
  EXPECT_EQ(region.take_stuck(), "") << "once";
  region.reset(stream);
  region.enqueue(stream);
  stream.synchronize();
  EXPECT_EQ(region.take_stuck(), "");
  const TensorView y = step.session.host_output("y");
  EXPECT_EQ(std::vector<std::byte>(y.as<std::byte>(), y.as<std::byte>() + dense_bytes(y.dtype, y.shape)), expected);
}

/// The patience of a region that says nothing of it, and the engine's way: the run ends, the next one throws, the one after that is right.
TEST_F(DeviceStep, AWaitThatNobodyEndsTakesTwoSeconds) {
  Step step("cuda", "decode", "profile=1");
  step.run();
  DeviceRegion region(step.session.executable().plan(), 0, step.launches(), step.context.queue(), {});
  Stream& stream = *step.context.stream();
  const std::uint32_t poison = 0xffffff00u;
  stream.upload(region.counter(1), &poison, 4);
  const auto start = std::chrono::steady_clock::now();
  region.enqueue(stream);
  stream.synchronize();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GE(seconds, 1.9);
  EXPECT_LE(seconds, 3.0);
  EXPECT_NE(region.take_stuck().find("waited 2.0 s for launch 1"), std::string::npos);
}

/// Kernels that fill a GPU must not wait for each other's blocks.
TEST_F(DeviceStep, TwoThreadsRunRegionsOnOneGpu) {
  const std::vector<std::byte> expected = Step("cuda", "", "").run();
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      Step step("cuda", "decode", "profile=1");
      for (int run = 0; run < 2000; ++run) ASSERT_EQ(step.run(), expected) << "run " << run;
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(DeviceStep, TasksTellWhenTheyRan) {
  Step step("cuda", "decode", "profile=1");
  for (int run = 0; run < 3; ++run) step.run();
  const std::vector<TaskTime> tasks = step.session.executable().task_times();
  const SuperRegion& region = step.session.executable().super_kernels()->regions.at(0);
  std::map<int, double> ends;
  std::set<std::size_t> steps;
  for (const TaskTime& task : tasks) {
    EXPECT_LE(task.begin, task.ready);
    EXPECT_LE(task.ready, task.end);
    EXPECT_LE(task.end, task.told);
    EXPECT_LT(task.told, 0.01);
    EXPECT_GE(task.begin, ends[task.block]) << "tasks of a block follow each other";
    ends[task.block] = task.told;
    steps.insert(task.step);
  }
  EXPECT_EQ(steps.size(), region.last_step - region.first_step + 1);
}

}  // namespace
}  // namespace cermet
