// Many prompts at once give each what it gets alone.
#include "model/generate_batch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "io/json_file.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

Engine load_for(const std::filesystem::path& model, std::optional<DType> dtype, std::int64_t sequences,
                std::int64_t context = 512) {
  EngineOptions options;
  options.dtype = dtype;
  options.threads = 2;
  options.max_sequences = sequences;
  options.max_context = context;
  return Engine::load(model, options);
}

/// Prompts of uneven length, some longer than the passes that compute on float32 operands.
std::vector<BatchRequest> some_requests(const ModelConfig& config, double temperature) {
  std::vector<BatchRequest> requests;
  for (std::int64_t i = 0; i < 9; ++i) {
    BatchRequest& request = requests.emplace_back();
    const std::int64_t length = i % 4 == 2 ? 45 + i : 1 + 3 * i;
    for (std::int64_t t = 0; t < length; ++t)
      request.prompt.push_back(static_cast<std::int32_t>((11 * t * t + 17 * i + 3) % config.vocab_size));
    request.options.max_new_tokens = 4 + (5 * i) % 13;
    request.options.sampling.temperature = temperature;
    request.options.sampling.seed = static_cast<std::uint64_t>(40 + i);
    if (i % 3 == 1) request.options.sampling.repetition_penalty = 1.2;
  }
  return requests;
}

using Results = std::vector<Generation>;

/// Adds half of the requests after the first passes.
Results run_batch(Engine& engine, const std::vector<BatchRequest>& requests) {
  Results results(requests.size());
  std::vector<std::vector<std::int32_t>> streamed(requests.size());
  BatchGenerator generator(engine, {[&](std::size_t i, std::int32_t id) { streamed[i].push_back(id); },
                                    [&](std::size_t i, const Generation& result) { results[i] = result; }});
  std::size_t added = 0;
  for (; added < requests.size() / 2; ++added) EXPECT_EQ(generator.add(requests[added]), added);
  for (int pass = 0; pass < 3; ++pass) EXPECT_TRUE(generator.step());
  for (; added < requests.size(); ++added) generator.add(requests[added]);
  while (generator.step()) {
  }
  for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(streamed[i], results[i].ids);
  return results;
}

Results run_alone(Engine& engine, const std::vector<BatchRequest>& requests) {
  Results results;
  for (const BatchRequest& request : requests) {
    engine.reset(0);
    results.push_back(generate(engine, request.prompt, request.options));
  }
  return results;
}

void expect_same(const Results& expected, const Results& found, const std::string& what) {
  ASSERT_EQ(expected.size(), found.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(expected[i].ids, found[i].ids) << what << ", request " << i;
    EXPECT_EQ(expected[i].end, found[i].end) << what << ", request " << i;
    EXPECT_EQ(expected[i].prompt_tokens, found[i].prompt_tokens);
  }
}

// Alone in an engine for several sequences: one for a single sequence keeps the operands of a single token float32,
// which rounds bf16 results otherwise.
TEST(GenerateBatch, GivesEveryPromptWhatItGetsAlone) {
  for (const auto& [model, dtype] : {std::pair{references / "llama-gqa-f32", DType::f32},
                                     {references / "qwen3-qknorm-bf16", DType::bf16},
                                     {references / "qwen3moe-bf16", DType::bf16},
                                     {references / "mistral-window-bf16", DType::f32}})
    for (const double temperature : {0.0, 0.9}) {
      Engine alone = load_for(model, dtype, 2);
      const std::vector<BatchRequest> requests = some_requests(alone.config(), temperature);
      const Results expected = run_alone(alone, requests);
      for (const std::int64_t sequences : {3, 8}) {
        Engine engine = load_for(model, dtype, sequences);
        expect_same(expected, run_batch(engine, requests),
                    fmt::format("{}, {} sequences, temperature {}", model.filename().string(), sequences, temperature));
      }
    }
}

TEST(GenerateBatch, GreedyTokensOfTheDemoModelAreTheReferences) {
  const JsonDocument document = JsonDocument::read(demo / "reference.json");
  std::vector<BatchRequest> requests;
  std::vector<std::vector<std::int32_t>> expected;
  for (const Json prompt : document.root().at("prompts")) {
    BatchRequest& request = requests.emplace_back();
    for (const Json id : prompt.at("ids")) request.prompt.push_back(static_cast<std::int32_t>(id.as_integer()));
    expected.emplace_back();
    for (const Json id : prompt.at("greedy_ids")) expected.back().push_back(static_cast<std::int32_t>(id.as_integer()));
    request.options.max_new_tokens = std::ssize(expected.back());
  }
  Engine engine = load_for(demo, DType::f32, 4);
  const Results results = run_batch(engine, requests);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(results[i].ids, expected[i]) << "prompt " << i;
}

/// A cache that holds two of the longest requests at most: the others wait, and all are answered.
TEST(GenerateBatch, WaitsForMemory) {
  Engine alone = load_for(references / "llama-gqa-f32", DType::f32, 1, 64),
         tight = load_for(references / "llama-gqa-f32", DType::f32, 4, 64);
  std::vector<BatchRequest> requests = some_requests(alone.config(), 0);
  requests[3].options.max_new_tokens = 500;  // more than the context holds
  const Results expected = run_alone(alone, requests);
  EXPECT_EQ(expected[3].end, Generation::End::context);
  expect_same(expected, run_batch(tight, requests), "tight");
}

TEST(GenerateBatch, EndsAtStopTokensAndWhenCancelled) {
  Engine engine = load_for(references / "llama-gqa-f32", DType::f32, 2);
  std::vector<BatchRequest> requests = some_requests(engine.config(), 0);
  requests.resize(3);
  requests[0].options.max_new_tokens = 8;
  const Results free = run_alone(engine, requests);
  requests[0].options.stop_ids = {free[0].ids[5]};
  requests[1].options.max_new_tokens = 0;
  const Results stopped = run_batch(engine, requests);
  EXPECT_EQ(stopped[0].end, Generation::End::stop);
  EXPECT_LE(stopped[0].ids.size(), 5u);
  EXPECT_EQ(stopped[1].end, Generation::End::length);
  EXPECT_TRUE(stopped[1].ids.empty());
  EXPECT_EQ(stopped[2].ids, free[2].ids);

  std::vector<Generation::End> ends;
  BatchGenerator generator(engine, {{}, [&](std::size_t, const Generation& result) { ends.push_back(result.end); }});
  for (const BatchRequest& request : requests) generator.add(request);
  generator.step();
  generator.cancel();
  EXPECT_EQ(ends, (std::vector{Generation::End::length, Generation::End::cancelled,
                               Generation::End::cancelled}));  // the first has no tokens to make
  EXPECT_FALSE(generator.step());
}

/// In the middle of a pass: the request whose token it is, one whose token of the same pass was taken, one whose is
/// not, and one that waits for a place.
TEST(GenerateBatch, CancelsFromWithinAnEvent) {
  Engine engine = load_for(references / "llama-gqa-f32", DType::f32, 4);
  std::vector<BatchRequest> requests(6, BatchRequest{{}, {}});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = {static_cast<std::int32_t>(5 + i), 6, 7};
    requests[i].options.max_new_tokens = 8;
  }
  const Results alone = run_alone(engine, requests);
  Results results(requests.size());
  std::vector<int> ended(requests.size());
  BatchGenerator* running = nullptr;
  std::vector<std::size_t> seen(requests.size());
  const auto on_token = [&](std::size_t i, std::int32_t) {
    EXPECT_EQ(ended[i], 0) << "a token after the end of request " << i;
    if (++seen[i] == 3 && i == 1)
      for (const std::size_t other : {1, 0, 2, 4}) running->cancel(other);
  };
  BatchGenerator generator(engine, {on_token, [&](std::size_t i, const Generation& result) {
                                      ++ended[i];
                                      results[i] = result;
                                    }});
  running = &generator;
  for (const BatchRequest& request : requests) generator.add(request);
  while (generator.step()) {
  }
  EXPECT_EQ(generator.pending(), 0u);
  EXPECT_EQ(ended, std::vector<int>(requests.size(), 1));
  const std::size_t tokens[] = {3, 3, 2, 8, 0, 8};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(results[i].end, tokens[i] < 8 ? Generation::End::cancelled : Generation::End::length) << i;
    EXPECT_EQ(results[i].ids,
              std::vector(alone[i].ids.begin(), alone[i].ids.begin() + static_cast<std::ptrdiff_t>(tokens[i])))
        << i;
  }
}

/// The pass that failed counts as computed, so that another one would miss its tokens.
TEST(GenerateBatch, RefusesToGoOnAfterAStepThatThrew) {
  Engine engine = load_for(references / "llama-gqa-f32", DType::f32, 2);
  std::vector<Generation::End> ends;
  BatchGenerator generator(
      engine, {[](std::size_t, std::int32_t) { fail(Status::io, "client: expected a connection, found none"); },
               [&](std::size_t, const Generation& result) { ends.push_back(result.end); }});
  const BatchRequest request{{5, 6, 7}, {}};
  for (int i = 0; i < 3; ++i) generator.add(request);
  EXPECT_EQ(error_text([&] { generator.step(); }), "client: expected a connection, found none");
  const std::string refusal =
      "batch: expected one whose steps succeeded; one failed, so that tokens of its requests may be missing";
  EXPECT_EQ(error_text([&] { generator.step(); }), refusal);
  EXPECT_EQ(error_text([&] { generator.add(request); }), refusal);
  EXPECT_EQ(generator.pending(), 3u);
  generator.cancel();
  EXPECT_EQ(ends, std::vector<Generation::End>(3, Generation::End::cancelled));
  EXPECT_EQ(error_text([&] { generator.step(); }), refusal);
}

TEST(GenerateBatch, RefusesWhatNoPassCouldTake) {
  Engine engine = load_for(references / "llama-gqa-f32", DType::f32, 2, 64);
  BatchGenerator generator(engine, {});
  const auto adding = [&](std::vector<std::int32_t> prompt, Sampling sampling = {}) {
    BatchRequest request{std::move(prompt), {}};
    request.options.sampling = sampling;
    return error_text([&] { generator.add(request); });
  };
  EXPECT_EQ(adding({}), "prompt: expected at least one token, found none");
  EXPECT_EQ(adding({320}), "token id: expected 0 to 319, found 320");
  EXPECT_EQ(adding(std::vector<std::int32_t>(65, 7)), "prompt: expected at most 64 tokens (the context), found 65");
  EXPECT_EQ(adding({7}, {.top_p = 0}), "top_p: expected a number in (0, 1], found 0");
  EXPECT_FALSE(generator.step());
}

}  // namespace
}  // namespace cermet
