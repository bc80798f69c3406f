// What ranks that share a model hold, and what they say when they cannot.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/thread_pool.hpp"
#include "model/synth.hpp"
#include "tests/model/engines.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

using test::difference, test::engines, test::shared_by, test::tokens_of;

TEST(TensorParallel, ARankHoldsItsShareOfWeightsAndCache) {
  const Engine whole = Engine::load(demo, shared_by(1)), half = Engine::load(demo, shared_by(2));
  EXPECT_NEAR(static_cast<double>(half.weight_bytes()) / static_cast<double>(whole.weight_bytes()), 0.5, 0.015);
  EXPECT_EQ(half.cache_bytes() * 2, whole.cache_bytes());
}

/// Ranks quantize their own parts of rows, so that scales differ from those of one rank.
void expect_nearly_the_logits_of_one_rank(const std::filesystem::path& model, std::optional<DType> weights,
                                          double bound) {
  const std::int32_t ids[] = {7, 31, 15, 90, 62};
  std::vector<float> one;
  for (const int ranks : {1, 2, 3}) {
    EngineOptions options = shared_by(ranks);
    options.weights = weights;
    Engine engine = Engine::load(model, options);
    const TensorView row = engine.prefill(0, ids);
    const std::vector<float> logits(row.as<const float>(), row.as<const float>() + row.elements());
    if (ranks == 1) one = logits;
    else EXPECT_LT(difference(one, logits), bound) << ranks << " ranks";
  }
}

TEST(TensorParallel, Int8WeightsGiveNearlyTheLogitsOfOneRank) {
  expect_nearly_the_logits_of_one_rank(demo, DType::i8, 0.03);
}
TEST(TensorParallel, Fp8WeightsGiveNearlyTheLogitsOfOneRank) {
  expect_nearly_the_logits_of_one_rank(demo, DType::f8_e4m3, 0.1);
}
TEST(TensorParallel, PackedColumnsThatDoNotDivideGiveNearlyTheLogitsOfOneRank) {  // an inner dimension of 78
  expect_nearly_the_logits_of_one_rank(model_data / "quantized/compressed-tensors", {}, 0.05);
}

/// Of passes of many tokens, whose number ranks divide or not; sequences begin and end anywhere in a rank's share.
TEST(TensorParallel, RanksThatShareRowsHaveTheLogitsOfRanksThatHaveAll) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 302; ++i) ids.push_back((7 * i * i + 3) % 250);
  using Weights = std::optional<DType>;
  for (const auto& [model, weights] : {std::pair("llama-gqa-f32", Weights()),
                                       {"qwen3moe-mixed-f32", Weights()},
                                       {"llama-gqa-f32", Weights(DType::i8)},
                                       {"qwen3moe-mixed-f32", Weights(DType::f8_e4m3)}})
    for (const int ranks : {2, 3})
      for (const std::size_t tokens : {std::size_t{300}, std::size_t{301}, std::size_t{302}}) {
        std::vector<float> all;
        for (const bool share : {false, true}) {
          EngineOptions options = shared_by(ranks);
          options.share_rows = share;
          options.weights = weights;
          options.max_sequences = 2;
          options.max_context = 1024;
          Engine engine = Engine::load(references / model, options);
          const SequenceTokens batch[] = {{0, std::span(ids).first(111)},
                                          {1, std::span(ids).subspan(111, tokens - 111)}};
          const TensorView rows = engine.forward(batch, Engine::Logits::all);
          ASSERT_EQ(rows.shape[0], static_cast<std::int64_t>(tokens));
          const std::vector<float> logits(rows.as<const float>(), rows.as<const float>() + rows.elements());
          if (!share) all = logits;
          else EXPECT_LT(difference(all, logits), 1e-5) << model << ", " << ranks << " ranks, " << tokens << " tokens";
        }
      }
}

/// Vocabularies that ranks divide or not; one token and several.
TEST(TensorParallel, RanksFindTheLargestLogitOfTheWholeVocabulary) {
  const std::int32_t ids[] = {7, 31, 15, 90, 62, 8, 77, 41};
  for (const char* const model : {"llama-gqa-f32", "qwen3moe-mixed-f32"})
    for (const int ranks : {1, 2, 3, 4})
      for (const bool all_logits : {true, false}) {
        EngineOptions options = shared_by(ranks);
        options.max_sequences = 3;
        options.all_logits = all_logits;
        Engine engine = Engine::load(references / model, options);
        for (const std::size_t sequences : {std::size_t{3}, std::size_t{1}}) {
          std::vector<SequenceTokens> batch;
          std::vector<std::int32_t> expected;
          for (std::size_t s = 0; s < sequences; ++s)
            batch.push_back({static_cast<int>(s), std::span(ids).subspan(2 * s, sequences == 1 ? 1 : 2 + s)});
          const TensorView rows = engine.forward(batch, Engine::Logits::last);
          ASSERT_EQ(rows.shape, (Shape{static_cast<std::int64_t>(sequences), engine.config().vocab_size}));
          for (std::int64_t s = 0; s < rows.shape[0]; ++s) {
            const float* const row = rows.as<const float>() + s * rows.strides[0];
            expected.push_back(static_cast<std::int32_t>(std::max_element(row, row + rows.shape[1]) - row));
          }
          for (const SequenceTokens& part : batch) engine.drop(part.sequence, std::ssize(part.tokens));
          const TensorView found = engine.forward(batch, Engine::Logits::largest);
          ASSERT_EQ(found.dtype, ranks == 1 ? DType::f32 : DType::i32) << ranks << " ranks";
          if (ranks > 1) {
            const auto* const first = found.as<const std::int32_t>();
            EXPECT_EQ(std::vector<std::int32_t>(first, first + sequences), expected)
                << model << ", " << ranks << " ranks";
          }
          for (const SequenceTokens& part : batch) engine.drop(part.sequence, std::ssize(part.tokens));
        }
      }
}

TEST(TensorParallel, OptionsThatDoNotFitAreRefused) {
  EngineOptions many = shared_by(2);
  many.max_sequences = 1000;
  many.max_batch_tokens = 1000;
  test::expect_error(Status::invalid_argument, {"max_sequences", "expected at most 250", "found 1000"},
                     [&] { Engine::load(small_model, many); });
  test::expect_error(Status::invalid_argument, {"tensor_parallel", "found -1"},
                     [] { Engine::load(small_model, shared_by(-1)); });
}

// ---- Memory ----

/// A random checkpoint whose sizes 8 ranks divide, large beside what every rank has: norms and routers.
std::filesystem::path write_model(const test::ScratchFolder& folder, bool mixture) {
  std::string text =
      test::content_of(references / (mixture ? "qwen3moe-bf16" : "llama-rope-scaled-bf16") / "config.json");
  const auto set = [&](const std::string& field, int value) {
    const std::size_t at = text.find("\"" + field + "\":");
    ASSERT_NE(at, text.npos) << field;
    const std::size_t begin = text.find(':', at) + 1, end = text.find_first_of(",\n}", begin);
    text.replace(begin, end - begin, " " + std::to_string(value));
  };
  for (const auto& [field, value] : {std::pair("hidden_size", 256),
                                     {"num_attention_heads", 16},
                                     {"num_key_value_heads", 8},
                                     {"intermediate_size", 1024},
                                     {"vocab_size", 2048},
                                     {"num_hidden_layers", 2}})
    set(field, value);
  if (mixture) set("moe_intermediate_size", 256);
  ThreadPool pool(1);
  write_random_checkpoint({.config_file = folder.file("config.json", text), .out = folder / "model"}, pool);
  return folder / "model";
}

struct Held {
  double weights, cache;
};

Held held(const std::filesystem::path& model, int tensor, int experts) {
  EngineOptions options;
  options.threads = 1;
  options.max_context = 1024;
  options.tensor_parallel = tensor;
  options.expert_parallel = experts;
  const Engine engine = Engine::load(model, options);
  return {static_cast<double>(engine.weight_bytes()), static_cast<double>(engine.cache_bytes())};
}

void expect_shares(bool mixture, std::initializer_list<std::pair<int, int>> splits) {
  const test::ScratchFolder folder;
  const std::filesystem::path model = write_model(folder, mixture);
  const Held one = held(model, 1, 1);
  for (const auto& [tensor, experts] : splits) {
    const Held rank = held(model, tensor, experts);
    EXPECT_LE(rank.weights + rank.cache, 1.03 / tensor * (one.weights + one.cache)) << tensor << " x " << experts;
    EXPECT_GE(rank.weights + rank.cache, (one.weights + one.cache) / tensor) << tensor << " x " << experts;
  }
}

TEST(RankMemory, IsWithin3PercentOfAnEvenShareOfWeightsAndCache) { expect_shares(true, {{2, 1}, {4, 2}}); }

TEST(LongRankMemory, IsWithin3PercentOfAnEvenShareOfWeightsAndCache) {
  expect_shares(false, {{2, 1}, {4, 1}, {8, 1}});
  expect_shares(true, {{2, 1}, {4, 1}, {8, 1}, {2, 2}, {4, 4}, {8, 2}, {8, 4}, {8, 8}});
}

TEST(RankMemory, OfExpertParallelismAloneIsThatOfItsOwnExpertsAndTheRest) {
  const test::ScratchFolder folder;
  const std::filesystem::path model = write_model(folder, true);
  const Held one = held(model, 1, 1), half = held(model, 1, 2), quarter = held(model, 1, 4);
  EXPECT_EQ(half.cache, one.cache);
  EXPECT_NEAR((one.weights - half.weights) / (half.weights - quarter.weights), 2,
              1e-4);  // some numbers say which experts a rank has
  constexpr double expert_bytes = 2.0 * 3 * 256 * 256, layers = 2, experts = 16;
  EXPECT_NEAR((one.weights - half.weights) / (layers * experts / 2 * expert_bytes), 1, 0.01);
}

// ---- Engines with prompts of their own ----

/// One token's experts may all be elsewhere.
TEST(ExpertParallel, RanksOfQuantizedWeightsChooseTheTokensOfOne) {
  for (const DType weights : {DType::i8, DType::f8_e4m3}) {
    EngineOptions one = engines(1, 1), two = engines(1, 1, 2);
    one.dtype = two.dtype = DType::f32;
    one.weights = two.weights = weights;
    EXPECT_EQ(tokens_of(references / "mixtral-bf16", two), tokens_of(references / "mixtral-bf16", one))
        << name_of(weights);
  }
}

TEST(Replicas, ChooseTheTokensOfOneEngine) {
  const auto one = tokens_of(small_model, engines(1, 1));
  EXPECT_EQ(tokens_of(small_model, engines(3, 1)), one);
  EXPECT_EQ(tokens_of(small_model, engines(2, 2)), one);
}

TEST(SharedExperts, ARankHoldsItsExpertsAndTheRest) {
  const test::ScratchFolder folder;
  const std::filesystem::path model = write_model(folder, true);
  const Held one = held(model, 1, 1), quarter = held(model, 1, 4);
  EngineOptions options = engines(4, 1, 4);
  options.threads = 1;
  options.max_context = 1024;
  run_replicas(model, options, [&](Engine& engine, Communicator&) {
    EXPECT_NEAR(static_cast<double>(engine.weight_bytes()) / quarter.weights, 1, 0.03);
    EXPECT_EQ(static_cast<double>(engine.cache_bytes()), one.cache);
  });
}

TEST(Replicas, AnEngineThatFailsEndsAllWithItsReason) {
  EngineOptions options = shared_by(1);
  options.data_parallel = 3;
  test::expect_error(Status::io, {"rank 1", "out of paper"}, [&] {
    run_replicas(small_model, options, [](Engine&, Communicator& peers) {
      if (peers.rank() == 1) fail(Status::io, "out of paper");
      peers.barrier();
    });
  });
}

}  // namespace
}  // namespace cermet
