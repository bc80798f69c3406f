// Super-kernels on GPUs, as far as that goes without one: what a region's launches need of each other, and one kernel
// linked of them.
#include <gtest/gtest.h>

#include <random>

#include "runtime/super_kernel/deal.hpp"
#include "runtime/super_kernel/report.hpp"
#include "tests/model/plugin.hpp"
#include "tests/runtime/super_kernel/walked_step.hpp"
#include "tests/support/golden.hpp"

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
  for (const char* options : {"profile=1", "debug-sync-all=1", "width=132"})
    EXPECT_TRUE(links_at_a_loss(SuperKernelOptions::parse(options))) << options;
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
  const Plan& plan = step.session.executable().plan();
  const DeviceRegion apart(plan, 0, launches, step.context.queue(), {.prefetch = false}),
      late(plan, 0, launches, step.context.queue(), {.early_start = false});
  for (std::uint32_t i = 0; i < launches.size(); ++i) {
    EXPECT_TRUE(region.instances()[i].feeds_after == 0 && region.instances()[i].early) << i;
    EXPECT_TRUE(apart.instances()[i].feeds_after == i && apart.instances()[i].early)
        << i << ": weights flow behind all launches before";
    EXPECT_TRUE(late.instances()[i].feeds_after == 0 && !late.instances()[i].early) << i;
  }
}

/// Steps whose launches all join, and whose walk holds. That the linked kernel computes the same is DeviceStep's.
class WalkedStep : public testing::TestWithParam<std::pair<const char*, const std::string*>> {
 protected:
  const std::string& text() const { return *GetParam().second; }
};
using LongWalkedStep = WalkedStep;  ///< to compile bodies takes seconds

/// First blocks of launches, here and there.
std::vector<std::uint32_t> anywhere(std::size_t launches, std::uint32_t blocks, std::uint64_t seed) {
  std::vector<std::uint32_t> list;
  for (std::size_t l = 0; l < launches; ++l) list.push_back(static_cast<std::uint32_t>((seed + 1) * 31 * l) % blocks);
  return list;
}

void expect_walk_holds(const std::string& text) {
  Step step("null:sm_90", "decode", "profile=1:strict-scope-check=abort", text);
  step.session.run();
  const SuperFormation& formation = *step.session.executable().super_kernels();
  const Plan& plan = step.session.executable().plan();
  ASSERT_EQ(formation.regions.size(), 1u);
  ASSERT_EQ(formation.regions[0].end_launch, plan.launches().size());
  ASSERT_GE(plan.launches().size(), 4u);
  Needs needs = region_needs(plan, 0, plan.launches().size());
  for (const std::uint32_t blocks : {132, 7, 1})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      EXPECT_EQ(walk_in_any_order(plan, blocks, seed, needs), "") << blocks << " blocks, seed " << seed;
      EXPECT_EQ(walk_in_any_order(plan, blocks, seed, needs, 0, anywhere(needs.size(), blocks, seed)), "")
          << blocks << " blocks, seed " << seed << ", dealt out";
    }
  needs.back().clear();
  EXPECT_NE(walk_in_any_order(plan, 132, 1, needs, 0, anywhere(needs.size(), 132, 1)), "")
      << "what a missing wait looks like";
}

TEST_P(WalkedStep, HoldsInAnyOrderOfBlocks) { expect_walk_holds(text()); }
TEST_P(LongWalkedStep, HoldsInAnyOrderOfBlocks) { expect_walk_holds(text()); }

TEST_P(LongWalkedStep, IsLinkedWithoutHardware) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  Step step("null:sm_90", "decode", "profile=1:strict-scope-check=abort", text());
  step.session.run();
  const std::vector<RegionLaunch> launches = step.launches();
  const DeviceRegion region(step.session.executable().plan(), 0, launches, step.context.queue(), {});
  EXPECT_EQ(region.count(), step.session.executable().plan().launches().size());
  if (text() == whole_text) EXPECT_EQ(region.shape().stages, 0) << "tasks have whole blocks";
  else EXPECT_GE(region.shape().stages, 2);
}

INSTANTIATE_TEST_SUITE_P(Of, WalkedStep,
                         testing::Values(std::pair("int8", &int8_text), std::pair("branches", &branches_text)),
                         name_of_step);
INSTANTIATE_TEST_SUITE_P(Of, LongWalkedStep, walked_steps, name_of_step);
INSTANTIATE_TEST_SUITE_P(OfLongRows, LongWalkedStep, testing::Values(std::pair("mixture", &long_rows_text)),
                         name_of_step);

TEST(DeviceRegion, BranchesLieOnDifferentBlocks) {
  Step step("null:sm_90", "decode", "profile=1", branches_text);
  step.session.run();
  expect_golden("runtime/golden/branches.txt", super_kernel_text(step.session.executable()));
  Step in_turn("null:sm_90", "decode", "profile=1:stream-fusion=0", branches_text);
  in_turn.session.run();
  const std::string text = super_kernel_text(in_turn.session.executable());
  EXPECT_EQ(text.find("16-31"), std::string::npos) << "one after the other, from block 0 on\n" << text;
}

/// Products of experts read early what the launch before has published.
TEST(DeviceRegion, ThatDeclinesLeavesResultsPublished) {
  const auto published = [](const std::string& select) {
    Step step("null:sm_90", select, "", mixture_text);
    step.session.run();
    step.session.executable().plan();  // which says what launches touch, and publishes nothing
    std::vector<bool> list;
    for (const Launch& launch : step.session.executable().launched_plan().launches())
      list.push_back(launch.published[0] != nullptr);
    return list;
  };
  const std::vector<bool> plain = published("");
  EXPECT_EQ(std::ranges::count(plain, true), 1);
  EXPECT_EQ(published("decode"), plain);
}

}  // namespace
}  // namespace cermet
