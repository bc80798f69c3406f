// Engines with prompts of their own that share the experts of a mixture: the same tokens and logits as those of one
// engine, both ways of getting each other's rows.
#include <gtest/gtest.h>

#include "model/engine_options.hpp"
#include "tests/model/blocks.hpp"
#include "tests/model/engines.hpp"
#include "tests/model/plain_decoder.hpp"
#include "tests/model/plugin.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

using test::difference, test::engines, test::shared_by, test::tokens_of;

const std::filesystem::path mixtral = references / "mixtral-bf16",
                            uneven = references / "qwen3moe-bias-top1-bf16";  // the latter has 5 experts

EngineOptions sharing(int count, int experts, ExpertExchange exchange) {
  EngineOptions options = engines(count, 1, experts);
  options.dtype = DType::f32;
  options.expert_exchange = exchange;
  return options;
}

EngineOptions one_engine() {
  EngineOptions options = engines(1, 1);
  options.dtype = DType::f32;
  return options;
}

TEST(SharedExperts, EnginesChooseTheTokensOfOne) {
  const auto one = tokens_of(mixtral, one_engine());
  EXPECT_EQ(tokens_of(mixtral, sharing(2, 2, ExpertExchange::rows)), one);
  EngineOptions overlapped = sharing(4, 2, ExpertExchange::rows);
  overlapped.overlap_experts = true;
  EXPECT_EQ(tokens_of(mixtral, overlapped), one) << "two groups of two, halves on their way";
}

/// Ragged numbers of prompts, and ranks without any: 4 ranks with 7 prompts, and with 3.
void expect_gathering_engines_choose_the_tokens_of_one(const std::filesystem::path& model,
                                                       std::optional<DType> weights) {
  for (const std::size_t prompts : {7, 3}) {
    EngineOptions options = one_engine();
    options.weights = weights;
    const auto one = tokens_of(model, options, prompts);
    for (const auto& [count, experts] : {std::pair(2, 2), {4, 4}, {4, 2}}) {
      options = sharing(count, experts, ExpertExchange::gather);
      options.weights = weights;
      EXPECT_EQ(tokens_of(model, options, prompts), one)
          << model.filename() << ", " << prompts << " prompts, " << count << " x " << experts;
    }
  }
}

TEST(GatheredExperts, EnginesChooseTheTokensOfOne) {
  for (const std::filesystem::path& model : {mixtral, small_mixture, uneven})
    expect_gathering_engines_choose_the_tokens_of_one(model, {});
}

TEST(GatheredExperts, EnginesOfQuantizedWeightsChooseTheTokensOfOne) {
  for (const std::filesystem::path& model : {mixtral, small_mixture})
    for (const DType weights : {DType::i8, DType::f8_e4m3})
      expect_gathering_engines_choose_the_tokens_of_one(model, weights);
}

std::vector<float> row_of(const TensorView& logits) {
  return {logits.as<const float>(), logits.as<const float>() + logits.elements()};
}

/// Rank 0 reads a prompt and rank 1 none, then each continues with a token of its own; all logits of the prompt at
/// last.
void expect_logits_of_one_engine(const std::filesystem::path& model, EngineOptions options, double bound,
                                 ExpertExchange exchange) {
  const std::int32_t prompt[] = {7, 31, 15, 90, 62}, next = 8;
  std::vector<std::vector<float>> one(4), shared(4);
  const SequenceTokens all{0, prompt};
  {
    Engine engine = Engine::load(model, options);
    one[0] = row_of(engine.prefill(0, prompt));
    one[1] = row_of(engine.prefill(0, {&next, 1}));
    engine.reset(0);
    one[2] = row_of(engine.prefill(0, {&next, 1}));
    engine.reset(0);
    one[3] = row_of(engine.forward({&all, 1}, Engine::Logits::all));
  }
  options.data_parallel = options.expert_parallel = 2;
  options.expert_exchange = exchange;
  run_replicas(model, options, [&](Engine& engine, Communicator& peers) {
    const bool reads = peers.rank() == 0;
    if (reads) shared[0] = row_of(engine.prefill(0, prompt));
    else EXPECT_TRUE(engine.forward_nothing());
    shared[reads ? 1 : 2] = row_of(engine.prefill(0, {&next, 1}));
    engine.reset(0);
    if (reads) {
      EXPECT_TRUE(engine.forward_nothing());
    } else {
      shared[3] = row_of(engine.forward({&all, 1}, Engine::Logits::all));
    }
    EXPECT_FALSE(engine.forward_nothing());
  });
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one[i].size(), shared[i].size()) << i;
    EXPECT_LT(difference(one[i], shared[i]), bound) << i;
  }
}

EngineOptions of_short_passes() {
  EngineOptions options = shared_by(1);
  options.max_batch_tokens = 64;
  return options;
}

TEST(SharedExperts, LogitsAreThoseOfOneEngine) {
  for (const ExpertExchange exchange : {ExpertExchange::rows, ExpertExchange::gather}) {
    expect_logits_of_one_engine(references / "qwen3moe-mixed-f32", of_short_passes(), 1e-6, exchange);
    expect_logits_of_one_engine(mixtral, of_short_passes(), 0.01, exchange);
  }
}

void expect_logits_of_one_quantized_engine(DType weights) {
  for (const ExpertExchange exchange : {ExpertExchange::rows, ExpertExchange::gather}) {
    EngineOptions options = of_short_passes();
    options.dtype = DType::f32;
    options.weights = weights;
    expect_logits_of_one_engine(mixtral, options, 1e-3, exchange);
  }
}

TEST(SharedExperts, LogitsOfInt8ExpertsAreThoseOfOneEngine) { expect_logits_of_one_quantized_engine(DType::i8); }
TEST(SharedExperts, LogitsOfFp8ExpertsAreThoseOfOneEngine) { expect_logits_of_one_quantized_engine(DType::f8_e4m3); }
TEST(SharedExperts, LogitsBesideAQuantizedCacheAreThoseOfOneEngine) {
  EngineOptions options = of_short_passes();
  options.dtype = DType::f32;
  options.kv_cache = DType::i8;
  expect_logits_of_one_engine(mixtral, options, 1e-3, ExpertExchange::gather);
}

/// A checkpoint whose experts' inputs have one scale for a layer.
void write_static_experts(const std::filesystem::path& to, const char* scheme) {
  test::PlainDecoder decoder(references / "qwen3moe-mixed-f32");
  decoder.logits({7, 31, 15, 90, 62});
  const ModelConfig& config = decoder.config();
  for (const Layer& layer : config.decoder.layers) {
    const auto* mixture = find_body<Mixture>(layer);
    if (mixture == nullptr) continue;
    std::vector<std::string> first, second;
    for (std::int64_t e = 0; e < config.experts; ++e) {
      const FeedForward expert = mixture->expert(e);
      first.insert(first.end(), {expert.gate.name, expert.up.name});
      second.push_back(expert.down.name);
    }
    for (const std::vector<std::string>& modules : {first, second}) {
      const float scale =
          decoder.input_scale_for(modules) * (std::string(scheme) == "fp8_static" ? 127.0f / 448.0f : 1.0f);
      for (const std::string& module : modules) decoder.quantize(module, *scheme_named(scheme), scale);
    }
  }
  decoder.write(to, test::PlainDecoder::Format::compressed_tensors);
}

TEST(GatheredExperts, LogitsOfStaticInputsAreThoseOfOneEngine) {
  for (const char* scheme : {"w8a8_static", "fp8_static"}) {
    const test::ScratchFolder folder;
    write_static_experts(folder / "model", scheme);
    expect_logits_of_one_engine(folder / "model", of_short_passes(), 1e-3, ExpertExchange::gather);
  }
}

/// Every rank's steps find kernels of a GPU, whose programs compile, and nothing of a pass is read on the host.
TEST(GatheredExperts, CompileForAGpu) {
  if (const std::string reason = test::no_plugin(); !reason.empty()) GTEST_SKIP() << reason;
  for (const std::optional<DType> weights :
       {std::optional<DType>(), std::optional(DType::i8), std::optional(DType::f8_e4m3)}) {
    EngineOptions options = engines(2, 1, 2);
    options.device = "null:sm_90";
    options.weights = weights;
    options.max_batch_tokens = 32;
    options.max_sequences = 4;
    run_replicas(small_mixture, options, [&](Engine& engine, Communicator& peers) {
      const std::int32_t prompt[] = {7, 31, 15};
      if (peers.rank() == 0) engine.prefill(0, prompt);
      else EXPECT_TRUE(engine.forward_nothing());
      std::int64_t gathers = 0, scatters = 0;
      for (const bool prefill : {false, true})
        for (const StepInfo& step : engine.steps(prefill)) {
          EXPECT_NE(step.region.target(), nullptr) << step.kernel;
          const OpKind op = step.region.problem().op->kind;
          gathers += op == OpKind::all_gather;
          scatters += op == OpKind::reduce_scatter;
          EXPECT_NE(op, OpKind::ep_moe);
        }
      const std::int64_t layers = 2 * std::ranges::count(test::sparse_layers(engine.config()), true);  // of both passes
      EXPECT_EQ(gathers, 2 * layers) << "rows, and what is said about them";
      EXPECT_EQ(scatters, layers);
    });
  }
}

TEST(SharedExperts, OptionsThatDoNotFitAreRefused) {
  const auto nothing = [](Engine&, Communicator&) {};
  test::expect_error(Status::unsupported,
                     {"expert_parallel", "expected a divisor of the 3 engines of data_parallel", "found 2"},
                     [&] { run_replicas(mixtral, engines(3, 1, 2), nothing); });
  test::expect_error(Status::invalid_argument, {"expected ranks that divide the 8 experts", "found 3"},
                     [&] { run_replicas(mixtral, engines(3, 1, 3), nothing); });
  test::expect_error(Status::invalid_argument, {"expected a mixture of experts"},
                     [&] { run_replicas(small_model, engines(2, 1, 2), nothing); });
  EngineOptions alone = engines(2, 1);
  alone.overlap_experts = true;
  test::expect_error(Status::invalid_argument,
                     {"overlap_experts", "expected data_parallel and expert_parallel above 1", "found 2 and 1"},
                     [&] { run_replicas(mixtral, alone, nothing); });
  EngineOptions exchanging = engines(2, 1);
  exchanging.expert_exchange = ExpertExchange::gather;
  test::expect_error(Status::invalid_argument,
                     {"expert_exchange", "expected data_parallel and expert_parallel above 1", "found 2 and 1"},
                     [&] { run_replicas(mixtral, exchanging, nothing); });
  EngineOptions overlapped = sharing(2, 2, ExpertExchange::gather);
  overlapped.overlap_experts = true;
  test::expect_error(Status::unsupported, {"overlap_experts: expected expert_exchange rows with it, found gather"},
                     [&] { run_replicas(mixtral, overlapped, nothing); });
  EngineOptions on_gpu = sharing(2, 2, ExpertExchange::rows);
  on_gpu.device = "null:sm_90";
  test::expect_error(Status::unsupported, {"expert_exchange: expected gather on GPUs", "found rows"},
                     [&] { run_replicas(mixtral, on_gpu, nothing); });
  test::expect_error(Status::invalid_argument, {"expert_exchange: expected rows or gather, found \"all\""}, [] {
    EngineOptions options;
    set_option(engine_option_table().at("expert_exchange"), &options, "expert_exchange", "all");
  });
}

TEST(SharedExperts, AnEngineThatFailsEndsAllWithItsReason) {
  test::expect_error(Status::io, {"rank 1", "out of paper"}, [] {
    run_replicas(mixtral, engines(2, 1, 2), [](Engine& engine, Communicator& peers) {
      if (peers.rank() == 1) fail(Status::io, "out of paper");
      engine.forward_nothing();
    });
  });
}

}  // namespace
}  // namespace cermet
