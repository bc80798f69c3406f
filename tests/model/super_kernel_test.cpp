// Decode steps that are one super-kernel, of every checkpoint in the repository: the CPU computes the same bits, and a
// GPU would link the whole step.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "model/engine.hpp"
#include "runtime/super_kernel/reason.hpp"
#include "runtime/super_kernel/super_region.hpp"
#include "tests/model/plugin.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

class MarkedCheckpoint : public testing::TestWithParam<std::string> {
 protected:
  Engine load(const std::string& device, const SuperKernelSelection& selection, std::int64_t sequences,
              std::int64_t tokens) const {
    EngineOptions options;
    options.device = device;
    options.threads = 2;
    options.max_context = 64;
    options.max_sequences = sequences;
    options.max_batch_tokens = tokens;
    options.fusion.super_kernel = selection;
    return Engine::load(GetParam() == "demo" ? demo : references / GetParam(), options);
  }
};

/// What the last pass could not take into its region, as "scope kernel: reason, figures". Everything else is in regions
/// that nothing but these launches parts.
std::vector<std::string> breaks_of(Engine& engine) {
  Executable& executable = engine.last_executable();
  const SuperFormation* formation = executable.super_kernels();
  if (!formation) return {"no super-kernel"};
  std::vector<std::string> breaks;
  for (const SuperBreak& each : formation->breaks) {
    const StepInfo& step = executable.steps()[each.step];
    breaks.push_back(fmt::format("{} {}: {}, {}", step.scope, step.kernel, info_of(each.reason).id, each.found));
  }
  std::size_t taken = breaks.size();
  for (const SuperRegion& region : formation->regions) taken += region.end_launch - region.first_launch;
  EXPECT_EQ(taken, executable.plan().launches().size());
  EXPECT_EQ(formation->regions.size(), breaks.size() + 1);
  return breaks;
}

/// The logits of a batch bit by bit, which tells zeros of both signs apart, too.
std::vector<std::uint32_t> logit_bits(Engine& engine, std::span<const SequenceTokens> batch) {
  const TensorView logits = engine.forward(batch, Engine::Logits::last);
  const auto* bits = logits.as<const std::uint32_t>();
  return {bits, bits + logits.elements()};
}

void expect_same_logits(Engine& plain, Engine& marked, std::span<const SequenceTokens> batch, const std::string& what) {
  const std::vector<std::uint32_t> expected = logit_bits(plain, batch);
  EXPECT_EQ(logit_bits(marked, batch), expected) << what;
  EXPECT_GT(std::set(expected.begin(), expected.end()).size(), expected.size() / 2)
      << what << ": values that differ, or a mistake would not show";
  EXPECT_EQ(breaks_of(marked), std::vector<std::string>()) << what;
}

/// Engines of one sequence have kernels for a single token, those of two have not. The prompt is longer than the
/// sliding window of 16 of one checkpoint.
TEST_P(MarkedCheckpoint, HasTheSameLogitsOnTheCpu) {
  std::vector<std::int32_t> prompt;
  for (std::int32_t i = 0; i < 19; ++i) prompt.push_back((13 * i * i + 5) % 300);
  for (const std::int64_t sequences : {1, 2}) {
    Engine plain = load("cpu", {}, sequences, 32), marked = load("cpu", {"decode", ""}, sequences, 32);
    const auto expect_same = [&](std::span<const std::int32_t> first, std::span<const std::int32_t> second,
                                 const std::string& what) {
      const SequenceTokens batch[] = {{0, first}, {1, second}};
      expect_same_logits(plain, marked, std::span(batch).first(static_cast<std::size_t>(sequences)),
                         fmt::format("{} of {} sequences", what, sequences));
    };
    expect_same(prompt, std::span(prompt).first(4), "prompts");
    for (const std::int32_t& id : {7, 211, 30, 84}) expect_same({&id, 1}, {&id, 1}, fmt::format("token {}", id));
  }
}

/// What is known not to join. A token of 3 experts has 2 of 8 warps for each, and 6 of them cannot share the ring of
/// weights of a region, whose teams have 8.
std::vector<std::string> known_breaks(const std::string& name) {
  if (name == "qwen3moe-mixed-f32")
    return {"layers.3.experts gemv.combine: form, it streams weights with 224 threads; taken: 288"};
  return {};
}

TEST_P(MarkedCheckpoint, IsOneRegionOnAGpu) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  Engine engine = load("null:sm_90", {"decode", "profile=1"}, 1, 1);
  const std::int32_t id = 7;
  const SequenceTokens token{0, {&id, 1}};
  engine.forward({&token, 1}, Engine::Logits::last);
  EXPECT_EQ(breaks_of(engine), known_breaks(GetParam()));
  StepSequence choosing;
  choosing.id = id;
  EXPECT_EQ(engine.decode({&choosing, 1}, 2, [](std::span<const std::int32_t>) { return AfterStep::go_on; }), 2);
  EXPECT_EQ(breaks_of(engine), known_breaks(GetParam())) << "with the choice of the next token";
}

std::vector<std::string> marked_checkpoints() {
  std::vector<std::string> names{"demo"};
  for (const auto& entry : std::filesystem::directory_iterator(references))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, MarkedCheckpoint, testing::ValuesIn(marked_checkpoints()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace cermet
