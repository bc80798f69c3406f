// A task that never ends: the process says where its blocks are, and ends.
#include "runtime/super_kernel/region_watch.hpp"

#include "tests/model/plugin.hpp"
#include "tests/runtime/super_kernel/walked_step.hpp"

namespace cermet {
namespace {

TEST(RegionWatch, SaysWhereBlocksAre) {
  WatchedRegion region;
  region.names = {"layers.0 a", "layers.0 b"};
  region.patience = 10;
  const std::string start = "super-kernel of 2 launches: expected a block to begin another one within 10 s, found none: ";
  EXPECT_EQ(endless_text(region, std::vector<std::uint32_t>{3, 1, 2, 0, 2, 2, 2, 2}),
            start + "block 3 before the first launch; block 1 in layers.0 a; 5 blocks in layers.0 b; block 0 behind the last launch");
  EXPECT_EQ(endless_text(region, std::vector<std::uint32_t>{2, 1, 1}), start + "blocks 1, 2 in layers.0 a; block 0 in layers.0 b");
}

/// In place of launch `at`: its first block goes on for ever.
void seed_endless_body(cuda::Program& program) {
  program.prelude =
      "namespace endless {\nstruct Task {\n  struct Params {\n    unsigned words[4];\n  };\n  template <class Team>\n"
      "  static __device__ __forceinline__ void run(const Params&, uint32_t item, Team, char*) {\n"
      "    while (item == 0) asm volatile(\"nanosleep.u32 1000;\" ::: \"memory\");\n  }\n};\n}  // namespace endless\n";
  program.task = "endless::Task";
}

std::size_t endless_launch(const Step& step) {
  const auto found =
      std::ranges::find_if(step.programs, [&](const cuda::Program& p) { return p.stage_bytes == 0 && &p != &step.programs.front() && p.meeting_bytes == 0; });
  EXPECT_NE(found, step.programs.end());
  return static_cast<std::size_t>(found - step.programs.begin());
}

TEST(LongRegionWatch, ASeededBodyLinks) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  Step step("null:sm_90", "decode", "profile=1");
  step.session.run();
  const std::vector<RegionLaunch> launches = step.launches();
  seed_endless_body(step.programs.at(endless_launch(step)));
  EXPECT_EQ(DeviceRegion(step.session.executable().plan(), 0, launches, step.context.queue(), {}).count(), launches.size());
}

TEST_F(DeviceStep, ABodyThatNeverEndsEndsTheProcessWithNames) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    Step step("cuda", "decode", "profile=1");
    step.run();
    const std::vector<RegionLaunch> launches = step.launches();
    seed_endless_body(step.programs.at(endless_launch(step)));
    const DeviceRegion region(step.session.executable().plan(), 0, launches, step.context.queue(), {.deadline = 3, .patience = 100'000'000'000});
    region.enqueue(*step.context.stream());
    step.context.stream()->synchronize();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(1), "expected a block to begin another one within 3 s, found none: .*block 0 in launch [0-9]+");
}

}  // namespace
}  // namespace cermet
