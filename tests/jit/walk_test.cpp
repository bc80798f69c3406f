// Walks: what is compiled and linked, how shared memory is divided, and what cannot be part of one, with a toolchain
// that only counts.
#include "jit/walk.hpp"

#include <gtest/gtest.h>

#include "tests/jit/embedding_program.hpp"
#include "tests/jit/fake_toolchain.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::jit {
namespace {

const Target h100{.name = "a Hopper", .compute_capability = 90, .multiprocessors = 132, .shared_bytes = 227 << 10};

/// A task whose last warp streams weights.
cuda::Program streaming(const std::string& task, int threads = 288, std::int64_t stage_bytes = 32768) {
  cuda::Program program = program_of(task, threads);
  program.alternates = true;
  program.walk = {.stage_bytes = stage_bytes, .ring_bytes = 3 * stage_bytes + 48};
  program.shared_bytes = program.walk->ring_bytes + 1300;
  return program;
}

struct Walk : testing::Test {
  test::ScratchFolder scratch;
  DiskCache cache{scratch / "cache", 1 << 30};
  FakeToolchain tools;
  Options options{&tools, &cache, 4};
};

TEST(WalkShape, TheRingTakesWhatTasksLeave) {
  cuda::Program wide = program_of("Wide", 128);
  wide.shared_bytes = 98560;
  const std::vector<cuda::Program> programs{program_of("A", 64), streaming("S"), wide, streaming("T", 288, 28672)};
  const WalkShape shape = walk_shape(programs, h100, 14, 13);
  EXPECT_EQ(shape.pitch, 32768);
  EXPECT_EQ(shape.body_bytes, 98560);
  EXPECT_EQ(shape.stages, 4);
  EXPECT_EQ(shape.shared_bytes(14, 13), 1024 + 4 * 32768 + 98560 + walk::most_params + 14 * 48 + 13 * 4);
  EXPECT_EQ(walk_shape(programs, h100, 84, 83).stages, 3) << "a longer list leaves less";
}

TEST(WalkShape, WhatDoesNotFitIsRefused) {
  cuda::Program most = program_of("Most");
  most.shared_bytes = 180 << 10;
  EXPECT_EQ(error_text([&] {
              walk_shape(std::vector{most, streaming("S")}, h100, 2, 1);
            }),
            "super-kernel: expected room for two stages of 32768 bytes in the 232448 bytes of shared memory of a "
            "Hopper, found 45980 bytes");
}

TEST(WalkShape, AProductOfManyRowsHasWholeBlocks) {
  cuda::Program tiles = program_of("T", 384);
  tiles.walk = {.whole_block = true};
  tiles.shared_bytes = 215088;
  std::vector<cuda::Program> programs{streaming("S"), tiles};
  EXPECT_FALSE(declines_walk(tiles));
  const WalkShape shape = walk_shape(programs, h100, 2, 1);
  EXPECT_EQ(shape.threads, 384);
  EXPECT_EQ(shape.stages, 0);
  EXPECT_EQ(shape.body_bytes, 215168);
  programs[1].shared_bytes = 232000;
  EXPECT_NE(error_text([&] {
              walk_shape(programs, h100, 2, 1);
            }).find("expected at most 232448 bytes of shared memory on a Hopper, found"),
            std::string::npos);
}

TEST(WalkShape, ProgramsThatCannotJoinSayWhy) {
  EXPECT_FALSE(declines_walk(program_of("A")));
  EXPECT_FALSE(declines_walk(streaming("S")));
  cuda::Program pair = program_of("A"), own = program_of("A"), tiles = program_of("A"), foreign = program_of("A");
  pair.cluster = 2;
  own.alternates = true;
  tiles.divides_warps = true;
  foreign.foreign.emplace();
  EXPECT_EQ(declines_walk(pair), "its blocks form clusters of 2");
  EXPECT_EQ(declines_walk(own), "its weights stream through shared memory of its own");
  EXPECT_EQ(declines_walk(tiles), "its warps divide the work of a block in a way of their own");
  EXPECT_EQ(declines_walk(foreign), "code from outside is no task");
  cuda::Program maps = program_of("A");
  maps.reads_descriptors = true;
  EXPECT_EQ(declines_walk(maps), "its copies read descriptors, which must be a launch's own parameters");
  EXPECT_EQ(declines_walk(program_of("A", 512)), "512 threads; taken: up to 256");
  EXPECT_EQ(declines_walk(streaming("S", 544)), "it streams weights with 544 threads; taken: 288");
  EXPECT_EQ(error_text([&] { walk_shape(std::vector{pair}, h100, 1, 0); }),
            "super-kernel: expected tasks that can join, found A: its blocks form clusters of 2");
}

TEST_F(Walk, BodiesAreCompiledOnceAndOnlyStreamsHaveAFeedingHalf) {
  const std::vector<cuda::Program> programs{program_of("A", 128), streaming("S"), program_of("A", 128), streaming("S")};
  const WalkShape shape = walk_shape(programs, h100, 4, 3);
  const WalkImage linked = link_walk(programs, shape, h100, nullptr, options);
  // In the order of names that follow from their sources.
  EXPECT_TRUE(linked.bodies == (std::vector<std::uint32_t>{0, 1, 0, 1}) ||
              linked.bodies == (std::vector<std::uint32_t>{1, 0, 1, 0}));
  EXPECT_EQ(tools.compiled(), 3) << "two bodies and the walk";
  EXPECT_EQ(tools.linked(), 1);
  const std::string text = text_of(linked.image);
  EXPECT_NE(text.find("using Team = cermet::PartTeam<128, 0, 2>;"), text.npos) << text;
  EXPECT_NE(
      text.find(fmt::format("using Team = cermet::StreamTeam<288, {}, 32768, {}>;", shape.stages, shape.in_flight)),
      text.npos)
      << text;
  EXPECT_NE(text.find(fmt::format("cermet::walk::Shape<288, {}, 32768, {}>", shape.stages, shape.body_bytes)),
            text.npos)
      << text;
  const auto count = [&](std::string_view word) {
    int found = 0;
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("_feed(const cermet::walk::Call& call"), 2) << "once where it is defined, once where it is declared";
  EXPECT_EQ(count("#define CERMET_WALK\n"), 3)
      << "everywhere, so that all threads find their index where the walk puts it";
  EXPECT_TRUE(link_walk(programs, shape, h100, nullptr, options).image.from_cache);
  EXPECT_EQ(tools.compiled(), 3);
  EXPECT_EQ(tools.linked(), 1);
}

TEST_F(Walk, OtherDevicesAreRefused) {
  const Target later{.name = "later", .compute_capability = 120, .shared_bytes = 227 << 10};
  const std::vector<cuda::Program> programs{program_of("A", 128)};
  EXPECT_EQ(error_text([&] { link_walk(programs, walk_shape(programs, later, 1, 0), later, nullptr, options); }),
            "super-kernel: expected a device of compute capability 9.0, found one of 12.0");
}

}  // namespace
}  // namespace cermet::jit
