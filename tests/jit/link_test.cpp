// Linking tasks: what is compiled and linked, with a toolchain that only counts, and the table that a linked launch
// reads.
#include "jit/link.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/jit/embedding_program.hpp"
#include "tests/jit/fake_toolchain.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::jit {
namespace {

const Target hopper{.name = "a Hopper", .compute_capability = 90, .shared_bytes = 227 << 10};

struct Link : testing::Test {
  test::ScratchFolder scratch;
  DiskCache cache{scratch / "cache", 1 << 30};
  FakeToolchain tools;
  Options options{&tools, &cache, 4};
  Report report;
};

TEST_F(Link, EqualTasksShareABodyAndTheWidestSetsTheBlock) {
  cuda::Program second = program_of("B", 384), again = program_of("A");
  second.shared_bytes = 4090;
  again.min_blocks = 1;
  const std::vector<cuda::Program> programs{program_of("A"), second, again};
  const LinkedImage linked = link_tasks(programs, hopper, &report, options);
  EXPECT_EQ(linked.bodies, (std::vector<std::uint32_t>{0, 1, 0}));
  EXPECT_EQ(linked.shared_bytes, 4096 + cermet::linked::work_bytes);
  EXPECT_EQ(linked.threads, 384);
  EXPECT_EQ(tools.compiled(), 3) << "two bodies and the dispatcher";
  EXPECT_EQ(tools.linked(), 1);
  EXPECT_EQ(tools.last().form, cuda::CompileRequest::Form::lto_ir);
  const LinkedBody a = linked_body(programs[0], 384), b = linked_body(second, 384);
  EXPECT_NE(a.source.find("PartTeam<256>"), std::string::npos) << a.source;
  EXPECT_NE(b.source.find("BlockTeam<384, 1, false>"), std::string::npos) << b.source;
  EXPECT_EQ(text_of(linked.image), a.source + b.source + dispatcher_source(std::vector{a.name, b.name}, 384, 4096));
}

TEST_F(Link, NothingIsCompiledOrLinkedTwice) {
  const std::vector<cuda::Program> programs{program_of("A"), program_of("B")};
  link_tasks(programs, hopper, &report, options);
  EXPECT_TRUE(link_tasks(programs, hopper, &report, options).image.from_cache);
  EXPECT_EQ(tools.compiled(), 3);
  // In another order the bodies are the same; the dispatcher, and so the image, are others.
  EXPECT_FALSE(link_tasks(std::vector{programs[1], programs[0]}, hopper, &report, options).image.from_cache);
  EXPECT_EQ(tools.compiled(), 4);
  EXPECT_EQ(tools.linked(), 2);
}

TEST_F(Link, WhatCannotBeLinkedIsRefused) {
  const auto refusal = [&](std::vector<cuda::Program> programs, const Target& target = hopper) {
    return error_text([&] { link_tasks(programs, target, nullptr, options); });
  };
  cuda::Program pair = program_of("A");
  pair.cluster = 2;
  EXPECT_EQ(refusal({}), "link: expected at least one task, found none");
  const Target later{.name = "later", .compute_capability = 120, .shared_bytes = 99 << 10};
  EXPECT_EQ(refusal({program_of("A")}, later),
            "link: expected a device that runs native code, of compute capability 9.0 at most, found one of 12.0");
  EXPECT_EQ(refusal({program_of("B"), pair}), "link: expected tasks without clusters, found clusters of 2 in A");
}

TEST_F(Link, TakesAsMuchSharedMemoryAsABlockOfTheDeviceHas) {
  cuda::Program most = program_of("Most");
  most.shared_bytes = hopper.shared_bytes - cermet::linked::work_bytes;
  EXPECT_EQ(link_tasks(std::vector{program_of("A"), most}, hopper, &report, options).shared_bytes, 232448);
  cuda::Program more = program_of("More");
  more.shared_bytes = most.shared_bytes + 1;
  EXPECT_EQ(error_text([&] {
              link_tasks(std::vector{most, more}, hopper, nullptr, options);
            }),
            "link: expected at most 232448 bytes of shared memory on a Hopper, found 232400 of More and 64 of the "
            "dispatcher");
  const Target ampere{.name = "an A100", .compute_capability = 80, .shared_bytes = 163 << 10};
  EXPECT_EQ(
      error_text([&] { link_tasks(std::vector{most}, ampere, nullptr, options); }),
      "link: expected at most 166912 bytes of shared memory on an A100, found 232384 of Most and 64 of the dispatcher");
}

TEST(LinkedTable, HoldsInstancesNeedsAndParameters) {
  const std::string first = "parameters of the first", second(100, 'x');
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  const std::vector<LinkedInstance> instances{
      {0, 10, 4, bytes(first)}, {1, 5, 5, bytes(second), {{0, 10}}}, {0, 7, 2, bytes(first), {{0, 3}, {1, 5}}}};
  const LinkedTable table = linked_table(instances);
  EXPECT_EQ(table.blocks, 11u);
  const auto at = [&]<class T>(std::size_t offset, T) {
    T value;
    std::memcpy(&value, table.bytes.data() + offset, sizeof(T));
    return value;
  };
  const auto instance = [&](std::size_t i) { return at(i * sizeof(linked::Instance), linked::Instance{}); };
  const std::size_t needs = 3 * sizeof(linked::Instance);
  EXPECT_EQ(instance(1).body, 1u);
  EXPECT_EQ(instance(1).first_block, 4u);
  EXPECT_EQ(instance(2).first_block, 9u);
  EXPECT_EQ(instance(2).blocks, 2u);
  EXPECT_EQ(instance(2).items, 7u);
  EXPECT_EQ(instance(2).first_need, 1u);
  EXPECT_EQ(instance(2).needs, 2u);
  EXPECT_EQ((std::vector{instance(0).announces, instance(1).announces, instance(2).announces}),
            (std::vector{1u, 1u, 0u}));
  EXPECT_EQ(at(needs + 2 * sizeof(linked::Need), linked::Need{}).instance, 1u);
  EXPECT_EQ(at(needs + 2 * sizeof(linked::Need), linked::Need{}).items, 5u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(instance(i).params % linked::params_alignment, 0u);
    const std::string& text = i == 1 ? second : first;
    EXPECT_EQ(std::memcmp(table.bytes.data() + instance(i).params, text.data(), text.size()), 0) << i;
  }
}

TEST(LinkedTable, NeedsThatNothingCouldMeetAreRefused) {
  const auto refusal = [](std::vector<LinkedInstance> instances) {
    return error_text([&] { linked_table(instances); });
  };
  EXPECT_EQ(refusal({{0, 4, 1, {}, {{0, 4}}}}), "link: expected instance 0 to need earlier ones, found instance 0");
  EXPECT_EQ(refusal({{0, 4, 1, {}}, {0, 4, 1, {}, {{0, 5}}}}),
            "link: expected instance 1 to need at most 4 items of instance 0, found 5");
  EXPECT_EQ(refusal({{0, 4, 5, {}}}), "link: expected 1 to 4 blocks for the items of instance 0, found 5");
  EXPECT_EQ(refusal({{0, 4, 0, {}}}), "link: expected 1 to 4 blocks for the items of instance 0, found 0");
  EXPECT_EQ(refusal({{0, 1u << 31, 4, {}}}), "link: expected at most 2147482624 items of instance 0, found 2147483648");
  const std::uint32_t many = 1u << 30;
  EXPECT_EQ(refusal({{0, many, many, {}}, {0, many, many, {}}}),
            "link: expected fewer than 2^31 thread blocks, found 2147483648");
}

}  // namespace
}  // namespace cermet::jit
