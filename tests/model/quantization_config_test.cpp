// What is read of a quantized checkpoint's description, and what is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "io/json_file.hpp"
#include "model/checkpoint/checkpoint_report.hpp"
#include "model/checkpoint/compressed_tensors.hpp"
#include "model/checkpoint/modelslim.hpp"
#include "model/engine.hpp"
#include "tests/model/plain_decoder.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

using test::content_of;
using test::expect_error;
using test::PlainDecoder;
using test::ScratchFolder;

const std::filesystem::path llama = model_data / "reference/llama-gqa-f32";

constexpr std::string_view weights = R"("weights":{"num_bits":8,"type":"int","symmetric":true,"strategy":"channel"})";

std::string with_groups(std::string_view groups, std::string_view rest = "") {
  return fmt::format(R"({{"quant_method":"compressed-tensors","format":"int-quantized","config_groups":{{{}}}{}}})",
                     groups, rest);
}

std::string with_group(std::string_view fields, std::string_view rest = "") {
  return with_groups(fmt::format(R"("group_0":{{"targets":["Linear"],{}}})", fields), rest);
}

Quantization parse_quantization(const std::string& text, const std::filesystem::path& model = llama) {
  return read_compressed_tensors(JsonDocument::parse(text, "config.json").root(), load_config(model));
}

std::string scheme(const Quantization& quantization, const std::string& module) {
  return std::string(name_of(quantization.of(module)));
}

TEST(QuantizationConfig, TargetsAreNamesExpressionsAndTheClass) {
  const std::string dynamic = R"("input_activations":{"num_bits":8,"type":"int","strategy":"token","dynamic":true})";
  const std::string fixed = R"("input_activations":{"num_bits":8,"type":"int","strategy":"tensor","dynamic":false})";
  const Quantization q = parse_quantization(with_groups(
      fmt::format(
          R"("a":{{"targets":["Linear"],{0}}},"b":{{"targets":["re:.*mlp\\.(gate|up)_proj$","model.layers.1.self_attn.o_proj"],{0},{1}}},)"
          R"("c":{{"targets":["re:.*layers\\.1\\..*","re:self_attn"],{0},{2}}})",
          weights, dynamic, fixed),
      R"(,"ignore":["lm_head","re:model\\.layers\\.2\\.mlp"])"));
  EXPECT_EQ(scheme(q, "model.layers.0.self_attn.o_proj"),
            "w8a16");  // the class; "re:self_attn" does not match at the start
  EXPECT_EQ(scheme(q, "model.layers.0.mlp.gate_proj"), "w8a8_dynamic");
  EXPECT_EQ(scheme(q, "model.layers.1.mlp.gate_proj"), "w8a8_dynamic");     // the first group among expressions
  EXPECT_EQ(scheme(q, "model.layers.1.self_attn.o_proj"), "w8a8_dynamic");  // a name before an expression
  EXPECT_EQ(scheme(q, "model.layers.1.self_attn.v_proj"), "w8a8_static");
  EXPECT_EQ(scheme(q, "model.layers.2.mlp.up_proj"), "16bit");
  EXPECT_EQ(scheme(q, "lm_head"), "16bit");
}

TEST(QuantizationConfig, TheClassMeansRoutersAndTheHeadToo) {
  const Quantization q = parse_quantization(with_group(weights), model_data / "reference/mixtral-bf16");
  EXPECT_EQ(scheme(q, "model.layers.0.block_sparse_moe.gate"), "w8a16");
  EXPECT_EQ(scheme(q, "model.layers.0.block_sparse_moe.experts.3.w2"), "w8a16");
  EXPECT_EQ(scheme(q, "lm_head"), "w8a16");
  EXPECT_EQ(scheme(parse_quantization(with_group(weights), model_data / "reference/qwen3-qknorm-bf16"), "lm_head"),
            "16bit");  // tied: there is none
}

TEST(QuantizationConfig, FieldsThatChangeNothingAreFine) {
  EXPECT_EQ(
      scheme(
          parse_quantization(with_group(
              R"("weights":{"num_bits":8,"type":"float","strategy":"tensor","group_size":null,"observer":"mse",
    "observer_kwargs":{"a":1},"dynamic":false,"actorder":null,"scale_dtype":null},"format":"float-quantized","output_activations":null)",
              R"(,"kv_cache_scheme":null,"sparsity_config":{},"transform_config":{},"ignore":[],"quantization_status":"compressed")")),
          "lm_head"),
      "fp8_weight_only");
}

struct Refusal {
  std::string text, path, expected;
};

TEST(QuantizationConfig, RefusesByFieldWhatItDoesNotCompute) {
  const auto in_weights = [](std::string_view fields) {
    return with_group(fmt::format(R"("weights":{{{}}})", fields));
  };
  const auto in_inputs = [](std::string_view fields) {
    return with_group(fmt::format(R"({},"input_activations":{{{}}})", weights, fields));
  };
  const std::string group = "config_groups.group_0.";
  const Refusal refusals[] = {
      {R"({"quant_method":"gptq"})", "quant_method", "\"compressed-tensors\", found \"gptq\""},
      {R"({"quant_method":"compressed-tensors","format":"marlin-24","config_groups":{}})", "format",
       "found \"marlin-24\""},
      {in_weights(R"("num_bits":4,"type":"int","strategy":"channel")"), group + "weights.num_bits", "8, found 4"},
      {in_weights(R"("num_bits":8,"type":"int","strategy":"channel","actorder":"group")"), group + "weights.actorder",
       "\"weight\" or \"static\""},
      {with_groups(R"("W4A16":["Linear"])"), "config_groups.W4A16", "W8A8"},
      {in_weights(R"("num_bits":8,"type":"int","strategy":"channel","symmetric":false)"), group + "weights.symmetric",
       "true, found false"},
      {in_weights(R"("num_bits":8,"type":"int","strategy":"group","group_size":128)"), group + "weights.group_size",
       "null, found 128"},
      {in_weights(R"("num_bits":8,"type":"int","strategy":"block")"), group + "weights.strategy",
       "\"channel\" or \"tensor\", found \"block\""},
      {in_weights(R"("num_bits":8,"type":"int","strategy":"block","block_structure":[128,128])"),
       group + "weights.block_structure", "null"},
      {in_weights(R"("num_bits":8,"type":"int","strategy":"channel","dynamic":true)"), group + "weights.dynamic",
       "false, found true"},
      {in_weights(R"("num_bits":8,"type":"int","strategy":"channel","rotation":3)"), group + "weights.rotation",
       "no such field"},
      {in_weights(R"("num_bits":8,"type":"float","strategy":"channel")"), "format",
       "\"float-quantized\" for weights of type float"},
      {in_inputs(R"("num_bits":8,"type":"float","strategy":"token","dynamic":true)"), group + "input_activations.type",
       "that of the weights"},
      {in_inputs(R"("num_bits":8,"type":"int","strategy":"token","dynamic":false)"),
       group + "input_activations.strategy", "\"tensor\""},
      {in_inputs(R"("num_bits":8,"type":"int","strategy":"tensor","dynamic":"local")"),
       group + "input_activations.dynamic", "true or false"},
      {with_group(fmt::format(R"({},"output_activations":{{"num_bits":8}})", weights)), group + "output_activations",
       "null"},
      {with_group(weights, R"(,"kv_cache_scheme":{"num_bits":8})"), "kv_cache_scheme", "null"},
      {with_group(weights, R"(,"sparsity_config":{"format":"sparse-24-bitmask"})"), "sparsity_config.format",
       "\"dense\""},
      {with_group(weights, R"(,"transform_config":{"config_groups":{}})"), "transform_config", "no such field"},
      {with_group(weights, R"(,"quantization_status":"sliced")"), "quantization_status", "\"compressed\""},
      {with_group(weights, R"(,"ignore":["re:("])"), "ignore[0]", "expected"},
      {with_groups(fmt::format(R"("group_0":{{{}}})", weights)), "config_groups.group_0", "targets"},
  };
  for (const Refusal& refusal : refusals) {
    const std::optional<Error> error = test::error_of([&] { parse_quantization(refusal.text); });
    ASSERT_TRUE(error.has_value()) << refusal.text;
    const std::string message = error->what();
    EXPECT_NE(message.find(refusal.path), std::string::npos) << message;
    EXPECT_NE(message.find(refusal.expected), std::string::npos) << message;
  }
}

TEST(Descriptor, RefusesKindsAndModulesThatItDoesNotCompute) {
  const ModelConfig config = load_config(llama);
  std::string entries;
  for (const LinearModule& module : linear_modules(config))
    entries += fmt::format(R"("{}.weight":"W8A8_DYNAMIC",)", module.name);
  const auto parse_descriptor = [&](const std::string& text) {
    return read_modelslim(JsonDocument::parse(text, "quant_model_description.json").root(), config);
  };
  const std::string rest = R"("model_quant_type":"W8A8","version":"1.0.0","model.norm.weight":"FLOAT")";
  EXPECT_EQ(scheme(parse_descriptor("{" + entries + rest + "}"), "model.layers.2.mlp.down_proj"), "w8a8_dynamic");
  expect_error(Status::invalid_file, {"expected an entry \"model.layers.0.self_attn.q_proj.weight\", found none"},
               [&] { parse_descriptor("{" + rest + "}"); });
  expect_error(Status::unsupported, {"model.norm.weight", "expected FLOAT"},
               [&] { parse_descriptor("{" + entries + R"("model.norm.weight":"W8A8"})"); });
  expect_error(Status::unsupported, {"model.x.weight", "W8A8_DYNAMIC or W8A16, found \"W4A16\""},
               [&] { parse_descriptor("{" + entries + R"("model.x.weight":"W4A16"})"); });
  expect_error(Status::unsupported, {"kv_quant_type"},
               [&] { parse_descriptor("{" + entries + R"("kv_quant_type":"C8"})"); });
}

/// A quantized copy of the small Llama in which an edit goes wrong.
class Broken : public testing::Test {
 protected:
  void write(const char* scheme_name, PlainDecoder::Format format,
             const std::function<void(PlainDecoder&)>& edit = {}) {
    PlainDecoder decoder(llama);
    for (const LinearModule& module : linear_modules(decoder.config()))
      if (is_projection(module)) decoder.quantize(module.name, *scheme_named(scheme_name), 0.05f);
    if (edit) edit(decoder);
    decoder.write(scratch_ / "model", format);
  }
  /// Replaces the bytes at the start of a tensor's data.
  void overwrite(const std::string& file, const std::string& tensor, float value) {
    const std::filesystem::path path = scratch_ / "model/" / file;
    std::int64_t at = 0;
    {
      const SafetensorsFile opened = SafetensorsFile::open(path);
      const StoredTensor* found = opened.find(tensor);
      ASSERT_NE(found, nullptr) << tensor;
      at = opened.file_bytes() - opened.tensors().back().end + found->begin;
    }
    std::fstream stream(path, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(at);
    stream.write(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void expect_refused(Status status, std::initializer_list<std::string_view> fragments) {
    EngineOptions options;
    options.max_context = 32;
    expect_error(status, fragments, [&] { Engine::load(scratch_ / "model", options); });
  }

  ScratchFolder scratch_;
};

TEST_F(Broken, ScalesMustBeFiniteAndNotNegative) {
  for (const float bad : {-1.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    write("w8a8_static", PlainDecoder::Format::compressed_tensors);
    overwrite("model.safetensors", "model.layers.1.mlp.down_proj.weight_scale", bad);
    expect_refused(Status::invalid_file,
                   {"\"model.layers.1.mlp.down_proj.weight_scale\": expected finite scales of at least 0"});
  }
}

TEST_F(Broken, ScalesOfInputsMustBeAboveZero) {
  write("w8a8_static", PlainDecoder::Format::compressed_tensors);
  overwrite("model.safetensors", "model.layers.1.mlp.down_proj.input_scale", 0);
  expect_refused(Status::invalid_file,
                 {"\"model.layers.1.mlp.down_proj.input_scale\": expected finite scales above 0, found 0"});
}

TEST_F(Broken, ModulesThatShareAnInputMustShareItsScale) {
  write("w8a8_static", PlainDecoder::Format::compressed_tensors, [](PlainDecoder& decoder) {
    decoder.quantize("model.layers.1.self_attn.v_proj", *scheme_named("w8a8_static"), 0.06f);
  });
  expect_refused(Status::unsupported,
                 {"model.layers.1.self_attn.v_proj: expected the input scale of model.layers.1.self_attn.q_proj"});
}

TEST_F(Broken, ModulesThatShareAnInputMustShareTheirScheme) {
  write("w8a8_static", PlainDecoder::Format::compressed_tensors,
        [](PlainDecoder& decoder) { decoder.quantize("model.layers.0.mlp.up_proj", *scheme_named("w8a8_dynamic")); });
  expect_refused(Status::unsupported,
                 {"model.layers.0.mlp.up_proj: expected w8a8_static, the scheme of model.layers.0.mlp.gate_proj"});
}

TEST_F(Broken, ChecksSayWhatAnEngineWouldRefuse) {
  ThreadPool pool(2);
  const auto problems = [&] { return check(Checkpoint::open(scratch_ / "model"), pool).report.problems; };
  write("w8a8_static", PlainDecoder::Format::compressed_tensors);
  EXPECT_TRUE(problems().empty());
  const CheckpointReport sound = report(Checkpoint::open(scratch_ / "model"));
  EXPECT_EQ(sound.schemes, (std::vector<std::pair<std::string, std::int64_t>>{{"16bit", 1}, {"w8a8_static", 21}}));
  EXPECT_TRUE(sound.warnings.empty());
  overwrite("model.safetensors", "model.layers.1.mlp.down_proj.weight_scale", -1);
  ASSERT_EQ(problems().size(), 1u);
  EXPECT_NE(problems()[0].find("expected finite scales of at least 0"), std::string::npos);
  write("w8a8_static", PlainDecoder::Format::compressed_tensors,
        [](PlainDecoder& decoder) { decoder.quantize("model.layers.0.mlp.up_proj", *scheme_named("w8a8_dynamic")); });
  ASSERT_EQ(problems().size(), 1u);
  EXPECT_NE(problems()[0].find("model.layers.0.mlp.up_proj: expected w8a8_static"), std::string::npos);
}

TEST_F(Broken, OffsetsOfWeightsMustBeZero) {
  write("w8a8_dynamic", PlainDecoder::Format::modelslim);
  overwrite("quant_model_weights.safetensors", "model.layers.0.mlp.up_proj.weight_offset", 2);
  expect_refused(Status::unsupported, {"\"model.layers.0.mlp.up_proj.weight_offset\": expected zeros"});
}

TEST_F(Broken, TensorsMustBeThereInTheTypeThatTheSchemeStores) {
  write("16bit",
        PlainDecoder::Format::compressed_tensors);  // unquantized weights under a description that says otherwise
  std::string config = content_of(llama / "config.json");
  config.insert(config.rfind('}'), ",\"quantization_config\":" + with_group(weights));
  scratch_.file("model/config.json", config);
  expect_refused(Status::unsupported, {"\"model.layers.0.self_attn.q_proj.weight\": expected i8, found f32"});
}

TEST_F(Broken, OneDescriptionAtATime) {
  write("w8a8_dynamic", PlainDecoder::Format::compressed_tensors);
  scratch_.file("model/quant_model_description.json", "{}");
  expect_refused(Status::invalid_file, {"quantization_config: expected none beside quant_model_description.json"});
}

TEST_F(Broken, QuantizingWhileLoadingNeedsRealWeights) {
  write("w8a8_dynamic", PlainDecoder::Format::compressed_tensors);
  EngineOptions options;
  options.weights = DType::i8;
  expect_error(Status::invalid_argument,
               {"weights: expected none or a real type for a checkpoint that is quantized, found i8"},
               [&] { Engine::load(scratch_ / "model", options); });
  options.weights = std::nullopt;
  options.head = DType::i8;
  expect_error(Status::invalid_argument, {"head: expected none for a checkpoint that is quantized, found i8"},
               [&] { Engine::load(scratch_ / "model", options); });
  options.head = DType::bf16;
  expect_error(Status::invalid_argument, {"head: expected i8 or f8_e4m3, found bf16"},
               [&] { Engine::load(scratch_ / "model", options); });
}

TEST(CompressedTensors, ACheckpointOfThePackageGivesItsLogits) {
  const std::filesystem::path folder = model_data / "quantized/compressed-tensors";
  const JsonDocument document = JsonDocument::read(folder / "reference.json");
  std::vector<std::int32_t> ids;
  for (const Json id : document.root().at("input_ids")) ids.push_back(static_cast<std::int32_t>(id.as_integer()));
  EngineOptions options;
  options.dtype = DType::f32;
  Engine engine = Engine::load(folder, options);
  const SequenceTokens part{0, ids};
  const float* found = engine.forward({&part, 1}, Engine::Logits::all).as<float>();
  std::size_t same = 0, rows = 0;
  double difference = 0, magnitude = 0;
  for (const Json row : document.root().at("logits")) {
    double largest = 0;
    for (const Json expected : row) {
      const double error = std::abs(expected.as_number() - static_cast<double>(*found++));
      largest = std::max(largest, error);
      difference += error * error;
      magnitude += expected.as_number() * expected.as_number();
    }
    ++rows;
    same += largest < 1e-4;
  }
  // All of them where this was written; on a machine whose sums have another order a quantized value may differ, and
  // later tokens see that.
  EXPECT_GE(same, rows / 4);
  EXPECT_LT(std::sqrt(difference / magnitude), 0.05);
}

}  // namespace
}  // namespace cermet
