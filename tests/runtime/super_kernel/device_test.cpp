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
#include "tests/runtime/super_kernel/device_step.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

alignas(64) std::byte device_memory[1024];

ByteRange part(std::int64_t from, std::int64_t count) { return {device_memory + from, count}; }

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
