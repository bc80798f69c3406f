// What a model on a GPU must survive: long runs, several engines at once, refusals. Skipped, with the reason, where
// there is no GPU.
#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "device/cuda/plugin.hpp"
#include "model/generate.hpp"
#include "model/sampler.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

const std::vector<std::int32_t> prompt{5, 17, 200, 31, 8};

EngineOptions on_gpu() {
  EngineOptions options;
  options.device = "cuda";
  options.threads = 1;
  options.max_context = 1024;
  return options;
}

std::vector<std::int32_t> greedy(Engine& engine, std::int64_t tokens) {
  engine.reset(0);
  GenerateOptions options;
  options.max_new_tokens = tokens;
  return generate(engine, prompt, options).ids;
}

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  }
};

TEST_F(Gpu, TenThousandDecodeStepsTakeNoMoreMemory) {
  Engine engine = Engine::load(demo, on_gpu());
  greedy(engine, 64);
  const std::int64_t before = engine.queue().device->free_bytes();
  std::vector<std::int32_t> first;
  for (int round = 0; round < 10; ++round) {
    const std::vector<std::int32_t> ids = greedy(engine, 1000);
    if (round == 0) first = ids;
    EXPECT_EQ(ids, first) << "round " << round;
  }
  EXPECT_EQ(engine.queue().device->free_bytes(), before);
}

TEST_F(Gpu, SampledTokensAreThoseOfTheCpu) {
  EngineOptions options = on_gpu();
  options.dtype = DType::f32;
  Engine gpu = Engine::load(demo, options);
  options.device = "cpu";
  Engine cpu = Engine::load(demo, options);
  GenerateOptions choice;
  choice.max_new_tokens = 40;
  choice.sampling.temperature = 0.8;
  choice.sampling.top_k = 40;
  choice.sampling.top_p = 0.9;
  choice.sampling.repetition_penalty = 1.1;
  choice.sampling.seed = 11;
  EXPECT_EQ(generate(gpu, prompt, choice).ids, generate(cpu, prompt, choice).ids);
}

/// The demo's attention and head; tokens part only where a margin is within what rounded elements change.
TEST_F(Gpu, CompactWeightsGiveTheSameTokens) {
  Engine plain = Engine::load(demo, on_gpu());
  EngineOptions options = on_gpu();
  options.compact_weights = true;
  Engine compact = Engine::load(demo, options);
  EXPECT_EQ(greedy(compact, 100), greedy(plain, 100));
  EXPECT_GT(compact.weight_bytes(), plain.weight_bytes());
}

TEST_F(Gpu, EnginesOnTwoThreadsDoNotDisturbEachOther) {
  Engine alone = Engine::load(demo, on_gpu());
  const std::vector<std::int32_t> expected = greedy(alone, 100);
  const auto work = [] {
    Engine engine = Engine::load(demo, on_gpu());
    return greedy(engine, 100);
  };
  std::future<std::vector<std::int32_t>> one = std::async(std::launch::async, work),
                                         two = std::async(std::launch::async, work);
  EXPECT_EQ(one.get(), expected);
  EXPECT_EQ(two.get(), expected);
}

TEST_F(Gpu, BatchesGiveWhatSequencesGiveAlone) {
  EngineOptions options = on_gpu();
  options.dtype = DType::f32;
  options.max_sequences = 20;
  Engine engine = Engine::load(demo, options);
  const TensorView alone = engine.prefill(0, prompt);
  const std::vector<float> expected(alone.as<float>(), alone.as<float>() + alone.shape.back());
  engine.reset(0);
  std::vector<SequenceTokens> batch;
  for (int s = 0; s < 20; ++s) batch.push_back({s, prompt});
  const Rows rows(engine.forward(batch, Engine::Logits::last));
  for (std::int64_t r = 0; r < rows.count(); ++r)
    for (std::size_t i = 0; i < expected.size(); i += 7)
      ASSERT_NEAR(reinterpret_cast<const float*>(rows.row(r))[i], expected[i], 2e-4 * 20)
          << "sequence " << r << ", logit " << i;
}

/// One prompt together with sequences that decode: attention takes two launches.
TEST_F(Gpu, MixedBatchesGiveWhatSequencesGiveAlone) {
  EngineOptions options = on_gpu();
  options.dtype = DType::bf16;
  options.max_sequences = 5;
  Engine engine = Engine::load(demo, options);
  std::vector<std::int32_t> text;
  for (std::int32_t i = 0; i < 200; ++i) text.push_back(3 + i * 37 % 250);
  const std::span<const std::int32_t> all(text);
  const std::size_t contexts[] = {150, 7, 0, 64, 20}, added[] = {1, 1, 90, 1, 9};
  std::vector<std::vector<float>> expected;
  for (std::size_t s = 0; s < 5; ++s) {
    if (contexts[s] > 0) engine.prefill(0, all.first(contexts[s]));
    const TensorView alone = engine.prefill(0, all.subspan(contexts[s], added[s]));
    expected.emplace_back(alone.as<float>(), alone.as<float>() + alone.shape.back());
    engine.reset(0);
  }
  std::vector<SequenceTokens> batch;
  for (std::size_t s = 0; s < 5; ++s) {
    if (contexts[s] > 0) engine.prefill(static_cast<int>(s), all.first(contexts[s]));
    batch.push_back({static_cast<int>(s), all.subspan(contexts[s], added[s])});
  }
  const Rows rows(engine.forward(batch, Engine::Logits::last));
  for (std::size_t s = 0; s < 5; ++s) {
    float largest = 0, error = 0;
    for (std::size_t i = 0; i < expected[s].size(); ++i) {
      const float found = reinterpret_cast<const float*>(rows.row(static_cast<std::int64_t>(s)))[i];
      largest = std::max(largest, std::abs(expected[s][i]));
      error = std::max(error, std::abs(found - expected[s][i]));
    }
    EXPECT_LE(error, 0.03f * largest) << "sequence " << s;  // bf16 operands in passes of different sizes
  }
}

TEST_F(Gpu, MoreMemoryThanThereIsIsRefusedAndTheDeviceStaysUsable) {
  EngineOptions options = on_gpu();
  options.max_context = 1 << 30;
  const std::string text = error_text([&] { Engine::load(demo, options); });
  EXPECT_NE(text.find("expected room for"), std::string::npos) << text;
  Engine engine = Engine::load(demo, on_gpu());
  EXPECT_EQ(greedy(engine, 4).size(), 4u);
}

TEST_F(Gpu, DevicesThatDoNotExistAreRefused) {
  EngineOptions options = on_gpu();
  options.device = "cuda:99";
  const std::string text = error_text([&] { Engine::load(demo, options); });
  EXPECT_TRUE(text.starts_with("device 'cuda:99': expected an index below ")) << text;
}

TEST(NoGpu, AsksForADriverByName) {
  const std::string reason = cuda::unavailable_reason();
  if (reason.empty()) GTEST_SKIP() << "there is a GPU";
  EXPECT_TRUE(reason.starts_with("driver: expected ") || reason.starts_with("CUDA plugin: expected ")) << reason;
  EXPECT_EQ(error_text([] { make_device("cuda"); }), reason);
  EXPECT_EQ(error_text([] { make_device("cuda"); }), reason) << "the second time too";
}

}  // namespace
}  // namespace cermet
