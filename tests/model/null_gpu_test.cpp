// The whole path from a checkpoint to compiled GPU kernels, with no GPU: selection, run-time compilation, memory plan,
// binding, and a run that computes nothing.
#include <gtest/gtest.h>

#include <filesystem>

#include "model/generate.hpp"
#include "tests/model/plugin.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

class NullGpu : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_P(NullGpu, ModelsCompileForEveryArchitecture) {
  const auto& [model, device] = GetParam();
  EngineOptions options;
  options.device = device;
  options.threads = 1;
  options.max_context = 256;
  options.max_batch_tokens = 32;
  Engine engine = Engine::load(references / model, options);
  EXPECT_FALSE(engine.computes());
  const std::vector<std::int32_t> prompt{1, 2, 3};
  GenerateOptions few;
  few.max_new_tokens = 3;
  EXPECT_EQ(generate(engine, prompt, few).ids.size(), 3u);
  for (const bool prefill : {false, true})
    for (const StepInfo& step : engine.steps(prefill)) EXPECT_NE(step.region.target(), nullptr) << step.kernel;
  // A single token streams weights, so float32 costs nothing; from two on operands have the type of the checkpoint, and
  // queries that of the cache.
  for (const bool prefill : {false, true})
    for (const StepInfo& step : engine.steps(prefill)) {
      const DType expected = prefill ? engine.dtype() : DType::f32;
      if (step.region.problem().op->kind == OpKind::rope_and_cache) {
        EXPECT_EQ(step.region.problem().outputs[0].dtype, expected);
      }
      if (step.region.is_single() && step.region.problem().op->kind == OpKind::linear) {
        EXPECT_EQ(step.region.problem().input(0).dtype, expected) << step.scope;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, NullGpu,
                         testing::Combine(testing::Values("llama-gqa-f32", "qwen3moe-bf16"),
                                          testing::Values("null:sm_75", "null:sm_80", "null:sm_90")),
                         [](const auto& test) {
                           std::string name = std::get<0>(test.param) + "_" + std::get<1>(test.param).substr(5);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace cermet
