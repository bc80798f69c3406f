// A walk with a race in shared memory, for compute-sanitizer's racecheck: script/test-gpu says whether it is reported,
// and fails where one is in the same walk with the barriers that end the race. Outside of the tool both pass: what the
// body computes is not checked.
#include "jit/walk.hpp"
#include "tests/model/plugin.hpp"
#include "tests/runtime/super_kernel/seeded_body.hpp"

namespace cermet {
namespace {

enum class Barriers : std::uint8_t { kept, taken_away };

/// Threads store a word each and load that of the next warp, several times, so that loads come after stores and stores
/// after loads. By instructions that no compiler moves or drops.
void seed_race(cuda::Program& program, Barriers barriers) {
  const std::string barrier = barriers == Barriers::kept ? "      team.sync();\n" : "";
  program.threads = jit::walk_threads;
  program.walk = {.body_bytes = std::max<std::int64_t>(jit::walk_bytes(program), 4 * program.threads)};
  seed_body(
      program, barriers == Barriers::kept ? "sound" : "racing",
      "    const uint32_t words = static_cast<uint32_t>(__cvta_generic_to_shared(smem)), rank = team.rank();\n"
      "#pragma unroll 1\n    for (uint32_t turn = 0; turn < 4; ++turn) {\n      uint32_t other;\n"
      "      asm volatile(\"st.shared.u32 [%0], %1;\" ::\"r\"(words + 4 * rank), \"r\"(item + turn) : \"memory\");\n" +
          barrier +
          "      asm volatile(\"ld.shared.u32 %0, [%1];\" : \"=r\"(other) : \"r\"(words + 4 * ((rank + 32) % "
          "Team::size)) : \"memory\");\n" +
          barrier + "    }\n");
}

/// The small step with such a body in place of one.
struct SeededWalk {
  Step step;
  std::vector<RegionLaunch> launches;
  std::unique_ptr<DeviceRegion> region;

  SeededWalk(const std::string& device, Barriers barriers) : step(device, "decode", "profile=1") {
    step.session.run();
    launches = step.launches();
    seed_race(step.programs.at(seeded_launch(step)), barriers);
    region = std::make_unique<DeviceRegion>(step.session.executable().plan(), 0, launches, step.context.queue(),
                                            DeviceRegionOptions{});
  }
  std::string walk() {
    region->enqueue(*step.context.stream());
    step.context.stream()->synchronize();
    return region->take_stuck();
  }
};

TEST(LongSeededRace, Links) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  for (const Barriers barriers : {Barriers::kept, Barriers::taken_away}) {
    const SeededWalk seeded("null:sm_90", barriers);
    EXPECT_EQ(seeded.region->count(), seeded.launches.size());
  }
}

TEST_F(DeviceStep, ASeededRaceIsForRacecheckToFind) { EXPECT_EQ(SeededWalk("cuda", Barriers::taken_away).walk(), ""); }
TEST_F(DeviceStep, WithItsBarriersTheSeededBodyHasNoRace) { EXPECT_EQ(SeededWalk("cuda", Barriers::kept).walk(), ""); }

}  // namespace
}  // namespace cermet
