#include "model/config.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "io/json_file.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "tests/model/blocks.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

using test::expect_error;
using test::ScratchFolder;

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder))
    entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

ModelConfig reference(std::string_view name) { return load_config(model_data / "reference" / name); }
ModelConfig good(std::string_view name) {
  return load_config_file(model_data / "config_good" / (std::string(name) + ".json"));
}
using Windows = std::vector<std::int64_t>;

bool has_qkv_bias(const ModelConfig& config) {
  const Attention& attention = test::attention_of(config.decoder);
  return attention.q.bias && attention.k.bias && attention.v.bias;
}
bool has_o_bias(const ModelConfig& config) { return test::attention_of(config.decoder).o.bias; }
bool has_qk_norm(const ModelConfig& config) { return test::attention_of(config.decoder).q_norm.has_value(); }
bool has_mlp_bias(const ModelConfig& config) { return test::feed_forward_of(config.decoder).down.bias; }

TEST(Config, ReadsEveryReferenceModelAndItsTensors) {
  const std::vector<std::filesystem::path> folders = entries_of(model_data / "reference");
  ASSERT_GE(folders.size(), 6u);
  for (const std::filesystem::path& folder : folders) {
    SCOPED_TRACE(folder);
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const std::vector<ExpectedTensor> expected = expected_tensors(checkpoint.config());
    for (const ExpectedTensor& tensor : expected)
      EXPECT_EQ(checkpoint.require(tensor.name, tensor.shape).dtype, checkpoint.config().dtype);
    EXPECT_EQ(expected.size(), checkpoint.tensors().size());
  }
}

TEST(Config, ReadsLlama) {
  const ModelConfig config = reference("llama-gqa-f32");
  EXPECT_EQ(config.architecture, Architecture::llama);
  EXPECT_EQ(config.architecture_name, "LlamaForCausalLM");
  EXPECT_EQ(config.vocab_size, 320);
  EXPECT_EQ(config.hidden_size, 96);
  EXPECT_EQ(config.layers, 3);
  EXPECT_EQ(config.heads, 6);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.intermediate_size, 160);
  EXPECT_EQ(config.max_position_embeddings, 512);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.rope.scaling, RopeScaling::plain);
  EXPECT_EQ(config.rope.theta, 10000);
  EXPECT_EQ(config.rope.rotary_dim, 16);
  EXPECT_EQ(test::windows_of(config), (Windows{0, 0, 0}));
  EXPECT_FALSE(has_qkv_bias(config) || has_o_bias(config) || has_mlp_bias(config) || has_qk_norm(config) ||
               config.decoder.is_tied());
  EXPECT_EQ(config.dtype, DType::f32);
  EXPECT_EQ(config.bos_id, 0);
  EXPECT_EQ(config.eos_ids, std::vector<std::int32_t>{1});
}

TEST(Config, ReadsBiases) {
  const ModelConfig llama = reference("llama-bias-mha-f16");
  EXPECT_TRUE(has_qkv_bias(llama) && has_o_bias(llama) && has_mlp_bias(llama));
  const ModelConfig qwen2 = reference("qwen2-bias-f16");
  EXPECT_TRUE(has_qkv_bias(qwen2));
  EXPECT_FALSE(has_o_bias(qwen2) || has_mlp_bias(qwen2));
  const ModelConfig qwen3_moe = reference("qwen3moe-bias-top1-bf16");
  EXPECT_TRUE(has_qkv_bias(qwen3_moe) && has_o_bias(qwen3_moe) && has_qk_norm(qwen3_moe));
  EXPECT_FALSE(test::mixture_of(qwen3_moe.decoder).each.up.bias);
}

TEST(Config, ReadsExperts) {
  const ModelConfig mixed = reference("qwen3moe-mixed-f32");
  EXPECT_EQ(mixed.experts, 12);
  EXPECT_EQ(mixed.experts_per_token, 3);
  EXPECT_EQ(mixed.expert_intermediate_size, 40);
  EXPECT_FALSE(test::mixture_of(mixed.decoder, 3).renormalize);
  EXPECT_EQ(test::sparse_layers(mixed),
            (std::vector<bool>{false, false, false, true}));  // every second layer, and layer 1 is excepted
  const ModelConfig mixtral = reference("mixtral-bf16");
  EXPECT_EQ(mixtral.experts, 8);
  EXPECT_EQ(mixtral.expert_intermediate_size, 160);
  EXPECT_TRUE(test::mixture_of(mixtral.decoder).renormalize);
  EXPECT_EQ(test::sparse_layers(mixtral), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(mixtral.rms_norm_eps, 1e-5);
  EXPECT_EQ(mixtral.rope.theta, 1e6);
}

TEST(Config, ReadsWindows) {
  EXPECT_EQ(test::windows_of(reference("mistral-window-bf16")), (Windows{16, 16, 16}));
  EXPECT_EQ(test::windows_of(reference("mixtral-bf16")), (Windows{0, 0, 0}));
  EXPECT_EQ(test::windows_of(good("mixtral-window-bf16")), (Windows{8, 8, 8}));
  EXPECT_EQ(test::windows_of(good("qwen2-mixedwindow-f32")), (Windows{0, 0, 8}));
  EXPECT_EQ(test::windows_of(good("qwen3-mixedwindow-f16")), (Windows{0, 8, 8}));
}

TEST(Config, ReadsRotaryScaling) {
  const RopeParameters llama3 = reference("llama-rope-scaled-bf16").rope;
  EXPECT_EQ(llama3.scaling, RopeScaling::llama3);
  EXPECT_EQ(llama3.theta, 500000);
  EXPECT_EQ(llama3.factor, 8);
  EXPECT_EQ(llama3.low_freq_factor, 1);
  EXPECT_EQ(llama3.high_freq_factor, 4);
  EXPECT_EQ(llama3.original_max_position_embeddings, 64);
  const RopeParameters yarn = good("llama-yarn-bf16").rope;
  EXPECT_EQ(yarn.scaling, RopeScaling::yarn);
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_EQ(yarn.attention_factor, 0.9);
  EXPECT_EQ(yarn.beta_fast, 16);
  EXPECT_EQ(yarn.beta_slow, 2);
  EXPECT_FALSE(yarn.mscale.has_value());
  EXPECT_EQ(good("llama-rope-linear2-f32").rope.scaling, RopeScaling::linear);
  EXPECT_EQ(good("llama-rope-dynamic2-f32").rope.scaling, RopeScaling::dynamic);
  EXPECT_EQ(good("llama-rope-dynamic2-f32").rope.factor, 2);
}

TEST(Config, ReadsGemma2) {
  const DecoderModel decoder = reference("gemma2-softcap-window-bf16").decoder;
  EXPECT_TRUE(decoder.is_tied());
  EXPECT_EQ(decoder.norm.weight_offset, 1);
  EXPECT_EQ(decoder.embedding_scale, std::sqrt(96.0));
  EXPECT_EQ(decoder.logit_softcap, 8);
  const Attention& attention = test::attention_of(decoder);
  EXPECT_EQ(attention.softcap, 3);
  EXPECT_EQ(attention.scale, 1 / std::sqrt(20.0));
  EXPECT_EQ(test::feed_forward_of(decoder).activation, Activation::gelu_tanh);
  EXPECT_EQ(test::windows_of(reference("gemma2-softcap-window-bf16")), (Windows{7, 0, 7, 0, 7}));
  for (const Block& block : decoder.layers[1]) EXPECT_EQ(block.post_norm.value_or(Norm{}).weight_offset, 1);
}

bool same(const RopeParameters& a, const RopeParameters& b) {
  return a.scaling == b.scaling && a.theta == b.theta && a.factor == b.factor &&
         a.low_freq_factor == b.low_freq_factor && a.high_freq_factor == b.high_freq_factor &&
         a.original_max_position_embeddings == b.original_max_position_embeddings &&
         a.attention_factor == b.attention_factor && a.mscale == b.mscale && a.mscale_all_dim == b.mscale_all_dim &&
         a.beta_fast == b.beta_fast && a.beta_slow == b.beta_slow && a.truncate == b.truncate &&
         a.rotary_dim == b.rotary_dim;
}

TEST(Config, TheOldSpellingSaysTheSame) {
  constexpr std::string_view suffix = "-oldspelling.json";
  int compared = 0;
  for (const std::filesystem::path& path : entries_of(model_data / "config_good")) {
    const std::string name = path.filename().string();
    if (!name.ends_with(suffix)) continue;
    SCOPED_TRACE(name);
    const std::string stem = name.substr(0, name.size() - suffix.size());
    const bool in_reference = std::filesystem::exists(model_data / "reference" / stem);
    const ModelConfig a = load_config_file(path), b = in_reference ? reference(stem) : good(stem);
    EXPECT_TRUE(same(a.rope, b.rope));
    EXPECT_EQ(a.dtype, b.dtype);
    EXPECT_EQ(test::windows_of(a), test::windows_of(b));
    EXPECT_EQ(test::sparse_layers(a), test::sparse_layers(b));
    EXPECT_EQ(a.experts, b.experts);
    EXPECT_EQ(a.head_dim, b.head_dim);
    EXPECT_EQ(a.decoder.is_tied(), b.decoder.is_tied());
    EXPECT_EQ(expected_tensors(a).size(), expected_tensors(b).size());
    ++compared;
  }
  EXPECT_GE(compared, 8);
}

/// The smallest Llama configuration with some fields added; a later field with the name of an earlier one replaces it.
std::string llama_with(std::string_view fields) {
  return fmt::format(
      R"({{"architectures":["LlamaForCausalLM"],"vocab_size":320,"hidden_size":96,"intermediate_size":160,"num_hidden_layers":3,)"
      R"("num_attention_heads":6{}{}}})",
      fields.empty() ? "" : ",", fields);
}

ModelConfig parse_config(const std::string& text) {
  static const ScratchFolder scratch;
  return load_config_file(scratch.file("config.json", text));
}

TEST(Config, FillsInDefaults) {
  const ModelConfig config = parse_config(llama_with(""));
  EXPECT_EQ(config.kv_heads, 6);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.max_position_embeddings, 2048);
  EXPECT_EQ(config.rope.original_max_position_embeddings, 2048);
  EXPECT_EQ(config.dtype, DType::f32);
  EXPECT_FALSE(config.bos_id.has_value());
  EXPECT_TRUE(config.eos_ids.empty());
  EXPECT_FALSE(config.decoder.is_tied());
  EXPECT_EQ(
      parse_config(
          llama_with(R"("head_dim":null,"num_key_value_heads":null,"rope_scaling":null,"quantization_config":null)"))
          .head_dim,
      16);
}

TEST(Config, TheNewSpellingOfTheTypeWins) {
  EXPECT_EQ(parse_config(llama_with(R"("dtype":"float16","torch_dtype":"bfloat16")")).dtype, DType::f16);
  EXPECT_EQ(parse_config(llama_with(R"("rope_theta":5000,"rope_parameters":{"rope_theta":7000,"rope_type":"default"})"))
                .rope.theta,
            7000);
  EXPECT_EQ(parse_config(llama_with(R"("rope_theta":5000,"rope_parameters":{"rope_type":"default"})")).rope.theta,
            5000);
  EXPECT_EQ(
      parse_config(llama_with(R"("rope_scaling":{},"rope_parameters":{"rope_type":"linear","factor":3})")).rope.factor,
      3);
}

// Nothing of these architectures reads it; older tools have left it.
TEST(Config, AllDimensionsRotate) {
  EXPECT_EQ(parse_config(llama_with(R"("partial_rotary_factor":0.5)")).rope.rotary_dim, 16);
  EXPECT_EQ(parse_config(llama_with(R"("rope_parameters":{"partial_rotary_factor":0.25})")).rope.rotary_dim, 16);
}

TEST(Config, YarnTakesItsFactorFromTheLengthsWhereItHasNone) {
  const RopeParameters rope =
      parse_config(
          llama_with(
              R"("max_position_embeddings":4096,"rope_scaling":{"type":"yarn","factor":null,"original_max_position_embeddings":1024})"))
          .rope;
  EXPECT_EQ(rope.factor, 4);
  EXPECT_EQ(rope.original_max_position_embeddings, 1024);
}

TEST(Config, NeutralValuesOfUnsupportedFieldsAreFine) {
  EXPECT_NO_THROW(parse_config(llama_with(
      R"("pretraining_tp":2,"attn_logit_softcapping":null,"alibi":false,"embedding_multiplier":1.0,"layer_types":["full_attention","full_attention","full_attention"])")));
  EXPECT_NO_THROW(parse_config(llama_with(R"("some_field_of_tomorrow":{"a":[1,2,3]})")));
  EXPECT_EQ(
      parse_config(
          R"({"model_type":"qwen3","architectures":[],"vocab_size":8,"hidden_size":8,"intermediate_size":8,"num_hidden_layers":1,"num_attention_heads":1,"num_key_value_heads":1})")
          .architecture,
      Architecture::qwen3);
}

TEST(Config, GenerationConfigDecidesWhereTextEnds) {
  const ScratchFolder scratch;
  scratch.file("config.json", llama_with(R"("eos_token_id":[5,6,5])"));
  EXPECT_EQ(load_config(scratch.path()).eos_ids, (std::vector<std::int32_t>{5, 6}));
  scratch.file("generation_config.json", R"({"temperature":0.6})");
  EXPECT_EQ(load_config(scratch.path()).eos_ids, (std::vector<std::int32_t>{5, 6}));
  scratch.file("generation_config.json", R"({"eos_token_id":[7,8]})");
  EXPECT_EQ(load_config(scratch.path()).eos_ids, (std::vector<std::int32_t>{7, 8}));
  scratch.file("generation_config.json", R"({"eos_token_id":320})");
  EXPECT_EQ(load_config(scratch.path()).eos_ids,
            (std::vector<std::int32_t>{5, 6}));  // not in the vocabulary: it never comes
}

TEST(Config, RefusesEveryBadFile) {
  const std::vector<std::filesystem::path> files = entries_of(model_data / "config_bad");
  ASSERT_GE(files.size(), 60u);
  for (const std::filesystem::path& file : files) {
    SCOPED_TRACE(file.filename());
    const JsonDocument document = JsonDocument::read(file);
    const Json expect = document.root().at("_expect");
    const Status status = expect.at("status").as_string() == "unsupported" ? Status::unsupported : Status::invalid_file;
    expect_error(status, {file.string() + ": ", expect.at("message").as_string()}, [&] { load_config_file(file); });
  }
}

TEST(Config, RefusesWhatIsNoConfiguration) {
  const ScratchFolder scratch;
  const auto refuse = [&](std::string_view content, std::string_view message) {
    expect_error(Status::invalid_file, {"config.json: ", message},
                 [&] { load_config_file(scratch.file("config.json", content)); });
  };
  refuse("", "expected JSON");
  refuse("[]", "expected an object, found an array");
  refuse("{\"hidden_size\":96,\"hidden_size\":97}", "found \"hidden_size\" twice");
  refuse("{\"a\":", "expected JSON");
  refuse(std::string(100000, '['), "nested at most");
  refuse("{\"a\":1e999}", "expected JSON");
  expect_error(Status::io, {"absent"}, [&] { load_config_file(scratch / "absent"); });
}

TEST(Config, RefusesWhatIsNoFolder) {
  const ScratchFolder scratch;
  expect_error(Status::io, {"absent: expected a model's folder, found nothing"},
               [&] { load_config(scratch / "absent"); });
  expect_error(Status::invalid_argument, {"file: expected a model's folder, found a file"},
               [&] { load_config(scratch.file("file", "")); });
  std::filesystem::create_directory(scratch / "empty");
  expect_error(Status::io, {"empty: expected a folder with config.json, found none"},
               [&] { load_config(scratch / "empty"); });
}

// Numbers of a valid file replaced by hostile ones: an error or a configuration whose tensors can be listed.
TEST(Config, SurvivesHostileNumbers) {
  const std::string base = test::content_of(model_data / "reference/qwen3moe-mixed-f32/config.json");
  const std::vector<std::string_view> hostile{
      "0",      "-1",  "1",    "2",    "7",     "65536", "2147483647", "2147483648",         "1e308",
      "1e-300", "0.5", "null", "true", "\"x\"", "[]",    "{}",         "9223372036854775807"};
  std::mt19937 random(11);
  const auto below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
  };
  int accepted = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = base;
    for (std::size_t edits = 1 + below(2); edits > 0; --edits) {
      const std::size_t colon = text.find(": ", below(text.size()));
      if (colon == std::string::npos) continue;
      const std::size_t end = text.find_first_of(",\n", colon);
      text.replace(colon + 2, end - colon - 2, hostile[below(hostile.size())]);
    }
    try {
      const ModelConfig config = parse_config(text);
      ++accepted;
      if (config.experts * config.layers < 10000) {
        EXPECT_GT(expected_tensors(config).size(), 0u);
      }
    } catch (const Error& error) {
      ASSERT_NE(error.status(), Status::internal) << error.what();
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace cermet
