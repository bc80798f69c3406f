// From programs to images: what is compiled, what comes from the cache, and how errors are reported; with a toolchain
// that only counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "jit/claim.hpp"
#include "jit/jit.hpp"
#include "tests/jit/embedding_program.hpp"
#include "tests/jit/fake_toolchain.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/golden.hpp"

namespace cermet::jit {
namespace {

struct Build : testing::Test {
  test::ScratchFolder scratch;
  DiskCache cache{scratch / "cache", 1 << 30};
  FakeToolchain tools;
  Options options{&tools, &cache, 4};
  Report report;
};

TEST(Wrapper, GoldenText) {
  const cuda::Program program{.header = "kernel/cuda/device/rowwise/rms_norm.cuh",
                              .task = "cermet::rms_norm::Task<{.hidden = 4096}>",
                              .threads = 128,
                              .min_blocks = 4};
  expect_golden("jit/golden/wrapper.cu", wrapper_source(program));
}

TEST_F(Build, EqualProgramsAreCompiledOnce) {
  cuda::Program shared = program_of("A");
  shared.shared_bytes = 4096;  // nothing the compiler sees
  const std::vector<cuda::Program> programs{program_of("A"), program_of("B"), program_of("A"), program_of("A", 128),
                                            shared};
  const std::vector<Image> images = build(programs, "sm_90a", &report, options);
  ASSERT_EQ(images.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(text_of(images[i]), wrapper_source(programs[i]));
  EXPECT_EQ(tools.compiled(), 3);
  EXPECT_EQ(report.programs, 5);
  EXPECT_EQ(report.unique, 3);
  EXPECT_EQ(report.compiled, 3);
  EXPECT_EQ(report.from_cache, 0);
  EXPECT_FALSE(images[0].from_cache);
  EXPECT_GT(images[0].seconds, 0.004);
}

TEST_F(Build, TheSecondTimeComesFromTheCache) {
  const std::vector<cuda::Program> programs{program_of("A"), program_of("B")};
  build(programs, "sm_90a", nullptr, options);
  DiskCache later(cache.folder(), 1 << 30);
  const std::vector<Image> images = build(programs, "sm_90a", &report, {&tools, &later, 4});
  EXPECT_EQ(tools.compiled(), 2);
  EXPECT_EQ(report.from_cache, 2);
  EXPECT_EQ(report.compiled, 0);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(images[i].from_cache);
    EXPECT_EQ(text_of(images[i]), wrapper_source(programs[i]));
    EXPECT_EQ(images[i].log, "report");
  }
}

TEST_F(Build, WhateverDecidesTheImageIsInTheKey) {
  const cuda::Program program = program_of("A");
  const auto compiled_after = [&](const cuda::Program& p, const std::string& architecture,
                                  const cuda::Toolchain& toolchain) {
    Report r;
    build(std::span(&p, 1), architecture, &r, {&toolchain, &cache, 1});
    return r.compiled;
  };
  EXPECT_EQ(compiled_after(program, "sm_90a", tools), 1);
  EXPECT_EQ(compiled_after(program, "sm_90a", tools), 0);
  ASSERT_EQ(cache.entries(true).size(), 1u);
  const std::string key = test::content_of(cache.folder() / cache.entries(true).front().digest / "source.cu");
  for (const char* part :
       {"sm_90a", "-std=c++20", "NVRTC 1.0", "kernel/cuda/device/types.cuh", "base/dtype.inc", "cermet_task"})
    EXPECT_NE(key.find(part), std::string::npos) << part << "\n" << key;
  EXPECT_EQ(compiled_after(program, "sm_80", tools), 1);
  EXPECT_EQ(compiled_after(program, "sm_90a", FakeToolchain("1.1")), 1);
  EXPECT_EQ(compiled_after(program_of("A", 512), "sm_90a", tools), 1);
  cuda::Program blocks = program;
  blocks.min_blocks = 2;
  EXPECT_EQ(compiled_after(blocks, "sm_90a", tools), 1);
  cuda::Program header = program;
  header.header = "kernel/cuda/device/types.cuh";
  EXPECT_EQ(compiled_after(header, "sm_90a", tools), 1);
}

TEST_F(Build, OnlyIncludedHeadersTravel) {
  build(std::vector{program_of("A")}, "sm_90a", nullptr, options);
  const auto& names = tools.header_names();
  const auto has = [&](const char* name) { return std::count(names.begin(), names.end(), name) == 1; };
  EXPECT_TRUE(has("kernel/cuda/device/movement/embedding.cuh"));
  EXPECT_TRUE(has("kernel/cuda/device/entry.cuh"));
  EXPECT_TRUE(has("base/dtype.inc")) << "included by an included header";
  EXPECT_FALSE(has("op/pointwise.inc"));
}

TEST_F(Build, LaterArchitecturesGetPortableCode) {
  for (const char* architecture : {"sm_100a", "sm_120a", "sm_103a", "compute_90"}) {
    build(std::vector{program_of("A")}, architecture, nullptr, options);
    EXPECT_EQ(tools.last().form, cuda::CompileRequest::Form::ptx);
    EXPECT_EQ(tools.last().options.front(), "-arch=compute_90") << architecture;
  }
  EXPECT_EQ(tools.compiled(), 1);
  for (const char* architecture : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a"}) {
    build(std::vector{program_of("A")}, architecture, nullptr, options);
    EXPECT_EQ(tools.last().form, cuda::CompileRequest::Form::cubin);
    EXPECT_EQ(tools.last().options.front(), "-arch=" + std::string(architecture));
  }
  for (const char* architecture : {"sm_70", "gfx90a", "sm_", "", "compute_"})
    EXPECT_NE(error_text([&] {
                build(std::vector{program_of("A")}, architecture, nullptr, options);
              }).find("architecture: expected"),
              std::string::npos)
        << architecture;
}

TEST_F(Build, CompilesInParallel) {
  std::vector<cuda::Program> programs;
  for (int i = 0; i < 40; ++i) programs.push_back(program_of("Task" + std::to_string(i)));
  const std::vector<Image> images = build(programs, "sm_90a", nullptr, options);
  for (std::size_t i = 0; i < programs.size(); ++i) EXPECT_EQ(text_of(images[i]), wrapper_source(programs[i]));
  EXPECT_EQ(tools.compiled(), 40);
  EXPECT_GT(tools.most_at_once(), 1);
  EXPECT_LE(tools.most_at_once(), 4);
}

TEST_F(Build, ErrorsCarryTheCompilersLogAndStopTheRest) {
  std::vector<cuda::Program> programs{program_of("begins"),
                                      program_of("broken1")};  // the first has begun when the second stops the rest
  for (int i = 0; i < 200; ++i) programs.push_back(program_of("Task" + std::to_string(i)));
  EXPECT_EQ(error_text([&] { build(programs, "sm_90a", &report, options); }),
            "broken1 does not compile:\nline 7: no such thing");
  EXPECT_LT(tools.compiled(), 100);
  EXPECT_EQ(text_of(build(std::vector{programs[0]}, "sm_90a", &report, options)[0]), wrapper_source(programs[0]))
      << "what compiled is kept";
  EXPECT_EQ(report.from_cache, 1);
}

/// Processes that start together: each has its own object for the same folder.
TEST_F(Build, WhoeverComesFirstCompilesForAll) {
  std::vector<cuda::Program> programs;
  for (int i = 0; i < 24; ++i) programs.push_back(program_of("Task" + std::to_string(i)));
  std::array<Report, 4> reports;
  {
    std::vector<std::jthread> starts;
    for (Report& own : reports)
      starts.emplace_back([&] {
        DiskCache mine(cache.folder(), 1 << 30);
        const std::vector<Image> images = build(programs, "sm_90a", &own, {&tools, &mine, 2});
        for (std::size_t i = 0; i < programs.size(); ++i) EXPECT_EQ(text_of(images[i]), wrapper_source(programs[i]));
      });
  }
  EXPECT_EQ(tools.compiled(), 24);
  std::int64_t compiled = 0;
  for (const Report& own : reports) {
    EXPECT_EQ(own.compiled + own.from_cache, 24);
    compiled += own.compiled;
  }
  EXPECT_EQ(compiled, 24);
  EXPECT_EQ(cache.strangers(), std::vector<std::string>());
}

TEST_F(Build, NobodyWaitsForAnotherWithoutEnd) {
  const cuda::Program program = program_of("A");
  build(std::vector{program}, "sm_90a", nullptr, options);
  const std::string name = cache.entries(false).at(0).digest;
  ASSERT_TRUE(cache.remove(name));
  const std::optional<Claim> stuck = Claim::take(cache.folder(), name, std::chrono::milliseconds(0));
  ASSERT_TRUE(stuck);
  EXPECT_FALSE(Claim::take(cache.folder(), name, std::chrono::milliseconds(5)));
  options.patience = std::chrono::milliseconds(10);
  EXPECT_EQ(text_of(build(std::vector{program}, "sm_90a", &report, options)[0]), wrapper_source(program));
  EXPECT_EQ(report.compiled, 1);
}

TEST_F(Build, NoProgramsNeedNoToolchain) { EXPECT_TRUE(build({}, "sm_90a").empty()); }

TEST_F(Build, WithoutACacheEverythingIsCompiled) {
  DiskCache none("", 1 << 30);
  for (int i = 0; i < 2; ++i) build(std::vector{program_of("A")}, "sm_90a", nullptr, {&tools, &none, 1});
  EXPECT_EQ(tools.compiled(), 2);
}

}  // namespace
}  // namespace cermet::jit
