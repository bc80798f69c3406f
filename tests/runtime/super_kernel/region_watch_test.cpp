// A task that never ends: the process says where its blocks are, and ends.
#include "runtime/super_kernel/region_watch.hpp"

#include "tests/model/plugin.hpp"
#include "tests/runtime/super_kernel/seeded_body.hpp"

namespace cermet {
namespace {

TEST(RegionWatch, SaysWhereBlocksAre) {
  WatchedRegion region;
  region.names = {"layers.0 a", "layers.0 b"};
  region.patience = 10;
  const std::string start =
      "super-kernel of 2 launches: expected a block to begin another one within 10 s, found none: ";
  EXPECT_EQ(endless_text(region, std::vector<std::uint32_t>{3, 1, 2, 0, 2, 2, 2, 2}),
            start +
                "block 3 before the first launch; block 1 in layers.0 a; 5 blocks in layers.0 b; block 0 behind the "
                "last launch");
  EXPECT_EQ(endless_text(region, std::vector<std::uint32_t>{2, 1, 1}),
            start + "blocks 1, 2 in layers.0 a; block 0 in layers.0 b");
}

/// Its first block goes on for ever.
void seed_endless_body(cuda::Program& program) {
  seed_body(program, "endless", "    while (item == 0) asm volatile(\"nanosleep.u32 1000;\" ::: \"memory\");\n");
}

TEST(LongRegionWatch, ASeededBodyLinks) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  Step step("null:sm_90", "decode", "profile=1");
  step.session.run();
  const std::vector<RegionLaunch> launches = step.launches();
  seed_endless_body(step.programs.at(seeded_launch(step)));
  EXPECT_EQ(DeviceRegion(step.session.executable().plan(), 0, launches, step.context.queue(), {}).count(),
            launches.size());
}

TEST_F(DeviceStep, ABodyThatNeverEndsEndsTheProcessWithNames) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    Step step("cuda", "decode", "profile=1");
    step.run();
    const std::vector<RegionLaunch> launches = step.launches();
    seed_endless_body(step.programs.at(seeded_launch(step)));
    const DeviceRegion region(step.session.executable().plan(), 0, launches, step.context.queue(),
                              {.deadline = 3, .patience = 100'000'000'000});
    region.enqueue(*step.context.stream());
    step.context.stream()->synchronize();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(1),
              "expected a block to begin another one within 3 s, found none: .*block 0 in launch [0-9]+");
}

}  // namespace
}  // namespace cermet
