// Rotary frequencies that follow the length of a sequence (rope type "dynamic"): of its own, whatever else is in a
// pass, and however a prompt is cut. Expected tokens are those of transformers.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "model/conversation.hpp"
#include "model/generate_batch.hpp"
#include "model/rotary.hpp"
#include "tests/model/tokenizer_cases.hpp"

namespace cermet::test {
namespace {

using Tokens = std::vector<std::int32_t>;

const json& expected_tokens() {
  static const json all = json::parse(content_of(model_data / "dynamic_rope/expected.json"));
  return all;
}

/// The checkpoint, trained for so many tokens.
std::filesystem::path checkpoint_for(const ScratchFolder& folder, int trained) {
  json config = json::parse(content_of(model_data / "dynamic_rope/config.json"));
  config["max_position_embeddings"] = trained;
  folder.file("config.json", config.dump());
  folder.file("model.safetensors", content_of(model_data / "dynamic_rope/model.safetensors"));
  return folder.path();
}

EngineOptions rope_options(std::int64_t context) {
  EngineOptions options;
  options.dtype = DType::f32;
  options.threads = 2;
  options.max_context = context;
  return options;
}

GenerateOptions new_tokens(std::int64_t count) {
  GenerateOptions options;
  options.max_new_tokens = count;
  return options;
}

TEST(RopeLength, APromptInPassesRotatesAsAWhole) {
  const ScratchFolder folder;
  const auto checkpoint = checkpoint_for(folder, 256);
  const auto prompt = expected_tokens()["long"]["prompt"].get<Tokens>(),
             answer = expected_tokens()["long"]["answer"].get<Tokens>();
  for (const std::int64_t pass : {512, 100, 1024}) {
    EngineOptions options = rope_options(1200);
    options.max_batch_tokens = pass;
    Engine engine = Engine::load(checkpoint, options);
    EXPECT_EQ(generate(engine, prompt, new_tokens(12)).ids, answer) << pass;
  }
}

TEST(RopeLength, EveryPromptOfABatchGetsWhatItGetsAlone) {
  const ScratchFolder folder;
  const auto checkpoint = checkpoint_for(folder, 32);
  const json& prompts = expected_tokens()["batch"]["prompts"];
  for (const auto& [sequences, pass] : {std::pair{1, 512}, {2, 512}, {2, 19}, {5, 64}}) {
    EngineOptions options = rope_options(160 * sequences);
    options.max_sequences = sequences;
    options.max_batch_tokens = pass;
    Engine engine = Engine::load(checkpoint, options);
    std::vector<Tokens> answers(prompts.size());
    BatchGenerator generator(engine, {.on_token = [&](std::size_t i, std::int32_t id) { answers[i].push_back(id); }});
    for (const json& prompt : prompts) generator.add({prompt.get<Tokens>(), new_tokens(24)});
    while (generator.step()) {
    }
    for (std::size_t i = 0; i < answers.size(); ++i)
      EXPECT_EQ(answers[i], expected_tokens()["batch"]["answers"][i].get<Tokens>())
          << i << ", " << sequences << " at a time, passes of " << pass;
  }
}

TEST(RopeLength, StepsInRowsAndRanksRotateAlike) {
  const ScratchFolder folder;
  const auto checkpoint = checkpoint_for(folder, 32);
  const std::size_t longest = 15;  // 120 tokens
  const auto prompt = expected_tokens()["batch"]["prompts"][longest].get<Tokens>(),
             answer = expected_tokens()["batch"]["answers"][longest].get<Tokens>();
  EngineOptions rows = rope_options(256), ranks = rope_options(256);
  rows.steps_per_launch = 4;
  rows.fusion.super_kernel.select = "decode";
  ranks.tensor_parallel = 2;
  ranks.max_batch_tokens = 50;
  for (const EngineOptions& options : {rows, ranks}) {
    Engine engine = Engine::load(checkpoint, options);
    EXPECT_EQ(generate(engine, prompt, new_tokens(24)).ids, answer) << options.tensor_parallel;
  }
}

TEST(RopeLength, RowsBeyondThePositionsAreThoseOfLongerTexts) {
  ModelConfig config;
  config.rope = {.scaling = RopeScaling::dynamic, .rotary_dim = 8, .factor = 2, .max_position_embeddings = 4};
  RotaryTables tables(config, DType::f32, 16, 8);
  EXPECT_EQ(tables.rows(), 24);
  EXPECT_EQ(tables.row(2, 3), 2);    // as long as in training
  EXPECT_EQ(tables.row(9, 10), 9);   // the last token
  EXPECT_EQ(tables.row(2, 10), 16);  // an earlier one of the same text
  EXPECT_EQ(tables.row(8, 10), 17);
  EXPECT_EQ(tables.filled(), 2);
  config.rope.sequence_length = 10;
  const RopeTable whole = make_rope_table(config.rope, 16);
  for (const auto& [row, position] : {std::pair{9, 9}, {16, 2}, {17, 8}})
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(tables.cos().as<float>()[row * 4 + i], whole.cos.view.as<float>()[position * 4 + i]) << row;
  tables.begin_pass();
  EXPECT_EQ(tables.row(1, 12), 16);
  config.rope.scaling = RopeScaling::plain;
  EXPECT_EQ(RotaryTables(config, DType::f32, 16, 8).rows(), 16);
}

TEST(RopeLength, ATextIsNoShorterThanItsPart) {
  const ScratchFolder folder;
  Engine engine = Engine::load(checkpoint_for(folder, 32), rope_options(64));
  const Tokens ids{1, 2, 3};
  const SequenceTokens part{0, ids, 2};
  expect_error(Status::invalid_argument, {"length of at least 3", "found 2"}, [&] {
    engine.forward({&part, 1}, Engine::Logits::last);
  });
}

}  // namespace
}  // namespace cermet::test
