// Steps that choose their tokens themselves, several to a launch: tokens, ends and contexts are those of steps one by
// one.
#include <gtest/gtest.h>

#include <filesystem>

#include "device/cuda/plugin.hpp"
#include "graph/rewrite/rule.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/decoder_choice.hpp"
#include "model/generate_batch.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

const std::vector<std::int32_t> opening{5, 17, 200, 31, 8};

struct How {
  const char* device = "cpu";
  std::int64_t steps = 1;
  const char* select = "";
  const char* options = "";
};

Engine load_how(const How& how, std::int64_t context = 256, std::int64_t sequences = 1) {
  EngineOptions options;
  options.device = how.device;
  options.threads = 2;
  options.max_context = context;
  options.max_sequences = sequences;
  options.steps_per_launch = how.steps;
  options.fusion.super_kernel = {how.select, how.options};
  return Engine::load(small_model, options);
}

/// What a generation leaves, and another one after it in the same context.
struct Outcome {
  std::vector<std::int32_t> ids, streamed, later;
  Generation::End end = {};
  std::int64_t length = 0, room = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome outcome_of(Engine& engine, const GenerateOptions& options) {
  engine.reset(0);
  Outcome found;
  const Generation made = generate(engine, opening, options, [&](std::int32_t id) { found.streamed.push_back(id); });
  found.ids = made.ids;
  found.end = made.end;
  found.length = engine.length(0);
  found.room = engine.room(0);
  GenerateOptions few;
  few.max_new_tokens = 3;
  const std::vector<std::int32_t> more{3};
  if (engine.room(0) > 1) found.later = generate(engine, more, few).ids;
  return found;
}

GenerateOptions tokens_of(std::int64_t count, double temperature, std::vector<std::int32_t> stops = {}) {
  GenerateOptions options;
  options.max_new_tokens = count;
  options.sampling.temperature = temperature;
  options.sampling.top_p = temperature > 0 ? 0.95 : 1;
  options.sampling.seed = 7;
  options.stop_ids = std::move(stops);
  return options;
}

/// Ends by length, by a stop at every place of a row, and by the end of the context; then all of it once more.
void expect_outcomes(const char* device, std::span<const How> list, std::int64_t context) {
  Engine plain = load_how({device}, context);
  for (const How& how : list) {
    Engine engine = load_how(how, context);
    for (const double temperature : {0.0, 1.1}) {
      const std::vector<std::int32_t> ids = outcome_of(plain, tokens_of(40, temperature)).ids;
      for (int round = 0; round < 2; ++round) {
        for (const std::int64_t count : {0, 1, 2, 5, 8, 23, 500})
          EXPECT_EQ(outcome_of(engine, tokens_of(count, temperature)), outcome_of(plain, tokens_of(count, temperature)))
              << how.steps << " steps, " << how.select << " " << how.options << ", " << count << " tokens, temperature "
              << temperature;
        for (const std::size_t at : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 9u, 17u})
          EXPECT_EQ(outcome_of(engine, tokens_of(40, temperature, {ids[at]})),
                    outcome_of(plain, tokens_of(40, temperature, {ids[at]})))
              << how.steps << " steps, " << how.select << " " << how.options << ", stop at " << at << ", temperature "
              << temperature;
      }
    }
  }
}

TEST(Steps, OutcomesAreThoseOfStepsOneByOne) {
  const How list[] = {{"cpu", 4}, {"cpu", 7, "decode"}, {"cpu", 1, "decode"}, {"cpu", 3, "layer"}};
  expect_outcomes("cpu", list, 64);
}

TEST(Steps, OutcomesOnAGpuAreThoseOfStepsOneByOne) {
  if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  const How list[] = {
      {"cuda", 4}, {"cuda", 7, "decode", "width=132"}, {"cuda", 1, "decode", "width=132"}, {"cuda", 16}};
  expect_outcomes("cuda", list, 64);
}

TEST(Steps, ACancelledOrBrokenGenerationLeavesItsContext) {
  Engine plain = load_how({}), engine = load_how({"cpu", 8, "decode"});
  for (Engine* each : {&plain, &engine}) {
    std::atomic<bool> cancelled = false;
    GenerateOptions options = tokens_of(40, 0);
    options.cancelled = &cancelled;
    int seen = 0;
    const auto cancel = [&](std::int32_t) { cancelled = ++seen == 6; };
    EXPECT_EQ(generate(*each, opening, options, cancel).end, Generation::End::cancelled);
    EXPECT_EQ(seen, 6);
    EXPECT_THROW(generate(*each, opening, tokens_of(40, 0),
                          [&](std::int32_t) {
                            if (++seen == 9) throw std::runtime_error("mine");
                          }),
                 std::runtime_error);
  }
  EXPECT_EQ(engine.length(0), plain.length(0));
  const GenerateOptions few = tokens_of(9, 0);
  EXPECT_EQ(generate(engine, opening, few).ids, generate(plain, opening, few).ids);
}

/// Half of the requests come while others run; an event cancels the third when it has two tokens.
std::vector<Generation> run_requests(Engine& engine, std::span<const BatchRequest> requests) {
  std::vector<Generation> results(requests.size());
  std::vector<std::size_t> tokens(requests.size());
  BatchGenerator* running = nullptr;
  const auto cancel = [&](std::size_t i, std::int32_t) {
    if (++tokens[i] == 2 && i == 2) running->cancel(i);
  };
  BatchGenerator generator(engine, {cancel, [&](std::size_t i, const Generation& result) { results[i] = result; }});
  running = &generator;
  std::size_t added = 0;
  while (added < requests.size() / 2) generator.add(requests[added++]);
  for (bool more = true; more;) {
    more = generator.step();
    if (tokens[0] + tokens[1] > 12 && added < requests.size()) generator.add(requests[added++]), more = true;
  }
  return results;
}

/// Uneven prompts, lengths and stops.
void expect_batches(const char* device, std::span<const How> list) {
  std::vector<BatchRequest> requests;
  for (std::int32_t i = 0; i < 8; ++i) {
    BatchRequest& request = requests.emplace_back();
    for (std::int32_t t = 0; t < 1 + 3 * i; ++t) request.prompt.push_back((11 * t * t + 17 * i + 3) % 300);
    request.options = tokens_of(i == 5 ? 200 : 4 + (7 * i) % 23, i % 2 ? 0.9 : 0);  // one is ended by its context
  }
  Engine plain = load_how({device}, 128, 3);
  std::vector<Generation> expected = run_requests(plain, requests);
  for (std::size_t i = 0; i < requests.size(); i += 3) {
    const std::vector<std::int32_t> ids = expected[i].ids;
    requests[i].options.stop_ids = {ids[ids.size() / 2]};
  }
  expected = run_requests(plain, requests);
  for (const How& how : list) {
    Engine engine = load_how(how, 128, 3);
    const std::vector<Generation> found = run_requests(engine, requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(found[i].ids, expected[i].ids) << how.steps << " steps, request " << i;
      EXPECT_EQ(found[i].end, expected[i].end) << how.steps << " steps, request " << i;
    }
    EXPECT_EQ(engine.length(0) + engine.length(1) + engine.length(2), 0);
  }
}

TEST(Steps, SequencesOfABatchGetWhatTheyGetOneByOne) {
  const How list[] = {{"cpu", 4}, {"cpu", 5, "decode"}, {"cpu", 1, "decode"}};
  expect_batches("cpu", list);
}

TEST(Steps, SequencesOfABatchOnAGpuGetWhatTheyGetOneByOne) {
  if (!cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  const How list[] = {{"cuda", 4}, {"cuda", 16}};
  expect_batches("cuda", list);
}

/// What a step updates at its end keeps nothing from joining.
TEST(Steps, AStepThatChoosesIsRewrittenAsOneThatDoesNot) {
  const Checkpoint checkpoint = Checkpoint::open(small_model);
  const auto operators_of = [&](bool chooses) {
    DecoderGraph decoder = build_decoder(checkpoint.config(), {}, {}, {8, 16, 2, 32});
    if (chooses) add_choice(decoder.graph, true, 16, 4, 1);
    const Graph rewritten = rewrite(decoder.graph, rewrite_rules()).graph;
    std::vector<OpKind> kinds;
    for (const Node& node : rewritten.nodes())
      if (node.op != OpKind::argmax && node.op != OpKind::advance_tokens) kinds.push_back(node.op);
    return kinds;
  };
  EXPECT_EQ(operators_of(true), operators_of(false));
}

TEST(Steps, WhatDoesNotFitIsRefusedByName) {
  Engine engine = load_how({"cpu", 4});
  GenerateOptions options = tokens_of(4, 0);
  options.sampling.repetition_penalty = 1.2;
  const std::string expected =
      "repetition_penalty: expected 1 with 4 steps per launch, between which the host sees no token, found 1.2";
  EXPECT_EQ(error_text([&] { generate(engine, opening, options); }), expected);
  BatchGenerator generator(engine, {});
  EXPECT_EQ(error_text([&] { generator.add({opening, options}); }), expected);
  EXPECT_EQ(error_text([&] { load_how({"cpu", 0}); }), "steps_per_launch: expected 1 to 256, found 0");
  EXPECT_EQ(error_text([&] { load_how({"cpu", 257}); }), "steps_per_launch: expected 1 to 256, found 257");
  EngineOptions ranks;
  ranks.steps_per_launch = 2;
  ranks.tensor_parallel = 2;
  EXPECT_EQ(error_text([&] { Engine::load(small_model, ranks); }),
            "steps_per_launch: expected 1 where ranks share a model or its experts, found 2");
}

}  // namespace
}  // namespace cermet
