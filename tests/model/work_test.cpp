// The work that a timed pass reports.
#include <gtest/gtest.h>

#include <filesystem>

#include "model/engine.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

/// Bytes of a grouped GEMM in which `groups` of them have rows, which its region may compute from wider ones.
double expected_bytes(const Region& region, double rows, double groups) {
  const Problem& problem = region.problem();
  const TensorType& read = region.nodes.front().problem.input(0);
  const double n = static_cast<double>(problem.size(1, 1)), k = static_cast<double>(problem.size(1, 2)),
               experts = static_cast<double>(problem.size(1, 0));
  const auto size = [&](std::size_t i) { return static_cast<double>(size_of(problem.input(i).dtype)); };
  return rows * static_cast<double>(read.dims.back().constant()) * static_cast<double>(size_of(read.dtype)) +
         groups * n * k * size(1) + (experts + 1) * size(2) +
         rows * n * static_cast<double>(size_of(problem.outputs[0].dtype));
}

/// Eight sequences that begin with the same token are routed alike: two experts have rows, although there are rows for
/// all eight.
TEST(Work, OfExpertsCountsThoseThatHaveRows) {
  EngineOptions options;
  options.max_sequences = 8;
  Engine engine = Engine::load(demo, options);
  const ModelConfig& config = engine.config();
  ASSERT_EQ(config.experts, 8);
  ASSERT_EQ(config.experts_per_token, 2);
  engine.set_timing(true);
  const std::int32_t id = 497;
  for (const int tokens : {1, 8}) {
    std::vector<SequenceTokens> batch;
    for (int s = 0; s < tokens; ++s) {
      engine.reset(s);
      batch.push_back({s, {&id, 1}});
    }
    engine.forward(batch, Engine::Logits::last);
    const EngineRun run = engine.last_run();
    int found = 0;
    for (const LaunchTime& launch : run.launches) {
      const Region& region = run.steps[launch.step].region;
      if (region.problem().op->kind != OpKind::grouped_linear) continue;
      EXPECT_EQ(launch.work.bytes, expected_bytes(region, 2 * tokens, 2)) << tokens << " tokens";
      ++found;
    }
    EXPECT_EQ(found, 2 * config.layers);
  }
}

}  // namespace
}  // namespace cermet
