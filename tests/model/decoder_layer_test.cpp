// Layers that run one at a time, as a quantizer runs them, against the whole decoder.
#include "model/decoder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "device/device.hpp"
#include "model/engine.hpp"
#include "model/rotary.hpp"
#include "model/weight_loader.hpp"
#include "runtime/compile.hpp"
#include "tests/model/blocks.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

constexpr std::int64_t tokens = 24, block = 16, pages = 2;

/// A chain of layers over one sequence of 24 tokens, from position 0.
class Chain {
 public:
  Chain(const std::filesystem::path& model, Quantization quantization)
      : checkpoint_(Checkpoint::open(model)),
        quantization_(std::move(quantization)),
        rotary_(config(), DType::f32, block * pages, 0),
        iota_(DType::i32, {tokens}),
        pages_(DType::i32, {1, pages}),
        length_(DType::i32, {1}),
        starts_(DType::i32, {2}) {
    std::iota(iota_.view.as<std::int32_t>(), iota_.view.as<std::int32_t>() + tokens, 0);
    std::iota(pages_.view.as<std::int32_t>(), pages_.view.as<std::int32_t>() + pages, 0);
    length_.view.as<std::int32_t>()[0] = tokens;
    starts_.view.as<std::int32_t>()[0] = 0;
    starts_.view.as<std::int32_t>()[1] = tokens;
  }

  const ModelConfig& config() const { return checkpoint_.config(); }
  std::map<std::string, std::vector<float>> taps;

  /// One graph, with inputs `in` bound by name. Returns the output `result`, and fills taps.
  std::vector<float> run(DecoderGraph decoder, const std::map<std::string, TensorView>& in, const std::string& result) {
    const std::unique_ptr<Device> device = make_device("cpu");
    WeightStore weights(make_weight_loader(reader_of(checkpoint_), std::move(decoder.sources), {}), pool_);
    CompileOptions options;
    for (const char* symbol : {"T", "R"}) options.maximum.set(Symbol(symbol), tokens);
    options.maximum.set(Symbol("B"), 1);
    std::vector<std::string> outputs;
    for (const GraphOutput& output : decoder.graph.outputs()) outputs.push_back(output.name);
    Executable executable = compile(std::move(decoder.graph), *device, weights, pool_, options);
    for (const auto& [name, view] : in) executable.bind(name, view);
    SymbolValues symbols;
    for (const char* symbol : {"T", "R"}) symbols.set(Symbol(symbol), tokens);
    symbols.set(Symbol("B"), 1);
    executable.run(symbols);
    const auto values = [&](const std::string& name) {
      const TensorView view = executable.output(name);
      std::vector<float> copy;
      for (std::int64_t i = 0; i < view.elements(); ++i)
        copy.push_back(view.dtype == DType::i32 ? static_cast<float>(view.as<std::int32_t>()[i]) : view.as<float>()[i]);
      return copy;
    };
    for (const std::string& name : outputs) taps[name] = values(name);
    return values(result);
  }

  std::vector<float> layer(std::int64_t index, std::vector<float>& hidden, bool with_taps) {
    const DecoderTypes types{storage_type(checkpoint_), DType::f32, DType::f32};
    const OwnedTensor k(DType::f32, cache_shape()), v(DType::f32, cache_shape());
    return run(
        build_decoder_layer(config(), types, quantization_, {pages, block, pages, pages * block}, index, with_taps),
        {{decoder_io::hidden, TensorView(hidden.data(), DType::f32, {tokens, config().hidden_size})},
         {decoder_io::positions, iota_.view},
         {decoder_io::slots, iota_.view},
         {decoder_io::block_tables, pages_.view},
         {decoder_io::context_lens, length_.view},
         {decoder_io::query_starts, starts_.view},
         {decoder_io::rope_cos, rotary_.cos()},
         {decoder_io::rope_sin, rotary_.sin()},
         {decoder_io::key_cache(index), k.view},
         {decoder_io::value_cache(index), v.view}},
        decoder_io::hidden);
  }

  /// Logits of all tokens: embedding, the layers one after the other, final norm and head.
  std::vector<float> logits(std::vector<std::int32_t> ids, bool with_taps) {
    const std::string head = config().decoder.head.name + ".weight";
    const TensorType matrix{storage_type(checkpoint_), {config().vocab_size, config().hidden_size}};
    DecoderGraph first, last;
    const ValueId id = first.graph.add_input("ids", {DType::i32, {tokens}});
    first.graph.add_output("out", first.graph.apply(OpKind::embedding, {id, first.graph.add_constant("table", matrix)},
                                                    {{"out_dtype", "f32"}}));
    first.sources["table"] = {{{"model.embed_tokens.weight"}}};
    std::vector<float> hidden = run(std::move(first), {{"ids", TensorView(ids.data(), DType::i32, {tokens})}}, "out");
    for (std::int64_t i = 0; i < config().layers; ++i) hidden = layer(i, hidden, with_taps);
    const ValueId x = last.graph.add_input("x", {DType::f32, {tokens, config().hidden_size}});
    const ValueId norm = last.graph.add_constant("norm", {DType::f32, {config().hidden_size}});
    const ValueId y = last.graph.apply(OpKind::rms_norm, {x, norm}, {{"eps", config().rms_norm_eps}});
    last.graph.add_output(
        "out", last.graph.apply(OpKind::linear, {y, last.graph.add_constant("head", matrix)}, {{"out_dtype", "f32"}}));
    last.sources["norm"] = {{{"model.norm.weight"}}};
    last.sources["head"] = {{{head}}};
    return run(std::move(last), {{"x", TensorView(hidden.data(), DType::f32, {tokens, config().hidden_size})}}, "out");
  }

 private:
  Shape cache_shape() const { return {pages, config().kv_heads, block, config().head_dim}; }

  Checkpoint checkpoint_;
  Quantization quantization_;
  ThreadPool pool_{2};
  RotaryTables rotary_;
  OwnedTensor iota_, pages_, length_, starts_;
};

/// Largest difference, relative to the largest expected magnitude.
double relative_error(const float* expected, const std::vector<float>& found) {
  double error = 0, magnitude = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(expected[i]) - static_cast<double>(found[i])));
    magnitude = std::max(magnitude, std::abs(static_cast<double>(expected[i])));
  }
  return error / magnitude;
}

class Layers : public testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(Layers, OneAtATimeGiveTheLogitsOfTheWholeDecoder) {
  const auto& [name, int8] = GetParam();
  const ModelConfig config = load_config(references / name);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<std::int32_t>((7 * i + 3) % config.vocab_size));
  EngineOptions options;
  options.dtype = DType::f32;
  options.max_context = 32;
  if (int8) options.weights = DType::i8;
  Engine engine = Engine::load(references / name, options);
  const SequenceTokens part{0, ids};
  const TensorView expected = engine.forward({&part, 1}, Engine::Logits::all);

  Quantization quantization;
  if (int8) quantization = quantize_projections(config, {LinearScheme::Weight::int8, LinearScheme::Input::dynamic});
  Chain chain(references / name, quantization);
  // A quantized value that a rounding moves by one step shows in the logits, more where the taps make quantization a
  // step of its own.
  EXPECT_LT(relative_error(expected.as<float>(), chain.logits(ids, false)), int8 ? 0.02 : 1e-5);
  EXPECT_EQ(chain.taps.count(decoder_io::tap_qkv), 0u);
  EXPECT_LT(relative_error(expected.as<float>(), chain.logits(ids, true)), int8 ? 0.02 : 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Layers,
                         testing::Combine(testing::Values("llama-gqa-f32", "qwen2-bias-f16", "qwen3moe-mixed-f32",
                                                          "mixtral-bf16"),
                                          testing::Bool()),
                         [](const auto& test) {
                           std::string name = std::get<0>(test.param) + (std::get<1>(test.param) ? "_int8" : "_real");
                           for (char& c : name)
                             if (c == '-') c = '_';
                           return name;
                         });

TEST(DecoderLayer, TapsAreTheInputsOfItsLinears) {
  Chain chain(references / "qwen3moe-mixed-f32", {});
  const ModelConfig& config = chain.config();
  std::vector<float> hidden;
  for (std::int64_t i = 0; i < tokens * config.hidden_size; ++i) hidden.push_back(std::sin(static_cast<float>(i)));
  const auto elements = [&](const char* tap) { return static_cast<std::int64_t>(chain.taps.at(tap).size()); };
  std::int64_t sparse = -1, dense = -1;
  for (std::int64_t i = 0; i < config.layers; ++i)
    (test::sparse_layers(config)[static_cast<std::size_t>(i)] ? sparse : dense) = i;
  ASSERT_TRUE(sparse >= 0 && dense >= 0);

  chain.layer(dense, hidden, true);
  EXPECT_EQ(elements(decoder_io::tap_qkv), tokens * config.hidden_size);
  EXPECT_EQ(elements(decoder_io::tap_o), tokens * config.heads * config.head_dim);
  EXPECT_EQ(elements(decoder_io::tap_gate_up), tokens * config.hidden_size);
  EXPECT_EQ(elements(decoder_io::tap_down), tokens * config.intermediate_size);
  EXPECT_EQ(chain.taps.count(decoder_io::tap_router), 0u);

  chain.taps.clear();
  chain.layer(sparse, hidden, true);
  const std::int64_t rows = tokens * config.experts_per_token;
  EXPECT_EQ(elements(decoder_io::tap_experts), tokens * config.hidden_size);
  EXPECT_EQ(elements(decoder_io::tap_router), tokens * config.experts);
  EXPECT_EQ(elements(decoder_io::tap_expert_input), rows * config.hidden_size);
  EXPECT_EQ(elements(decoder_io::tap_expert_down), rows * config.expert_intermediate_size);
  const std::vector<float>& offsets = chain.taps.at(decoder_io::tap_expert_rows);
  ASSERT_EQ(static_cast<std::int64_t>(offsets.size()), config.experts + 1);
  EXPECT_EQ(offsets.back(), static_cast<float>(rows));
  EXPECT_EQ(chain.taps.count(decoder_io::tap_gate_up), 0u);
}

TEST(DecoderLayer, ModulesThatShareAnInputMustShareTheirScheme) {
  const ModelConfig config = load_config(references / "llama-gqa-f32");
  Quantization quantization;
  quantization.modules["model.layers.0.self_attn.q_proj"] = {LinearScheme::Weight::int8, LinearScheme::Input::dynamic};
  try {
    build_decoder(config, {}, quantization, {pages, block, pages, pages * block});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::unsupported);
    EXPECT_NE(std::string(error.what()).find("model.layers.0.self_attn.k_proj: expected w8a8_dynamic"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace cermet
