// Fields of config.json that change nothing, in the spellings that tools and years have left.
#include <cmath>
#include <limits>

#include "tests/model/blocks.hpp"
#include "tests/model/checkpoint_edits.hpp"

namespace cermet {
namespace {

using test::EditedCase;

/// Fields set to JSON texts; a null text takes the field away.
struct ConfigVariant {
  const char* name;
  const char* base;
  std::vector<std::pair<const char*, const char*>> fields;
  double tolerance = 0;
  const char* more = "";  ///< text after the other fields
};

std::vector<ConfigVariant> config_variants() {
  const char *llama = "bos_out", *mistral = "kv_absent_mistral", *qwen3 = "head_dim_absent_qwen3",
             *qwen3_moe = "moe_fused_v5", *mixtral = "moe_mixtral_v5_names";
  return {
      {"special_tokens_out",
       llama,
       {{"bos_token_id", "-1"}, {"pad_token_id", "-1"}, {"eos_token_id", "[128001, 128008, -1]"}}},
      {"special_tokens_null", llama, {{"bos_token_id", "null"}, {"eos_token_id", "null"}, {"pad_token_id", nullptr}}},
      {"python_numbers",
       llama,
       {},
       0,
       R"("a": NaN, "b": [-Infinity, {"c": Infinity}], "initializer_range": NaN, "attention_dropout": NaN)"},
      {"dtype_of_torch", llama, {{"dtype", "\"torch.float32\""}}},
      {"dtype_of_parts", llama, {{"dtype", R"({"": "float32"})"}}},
      {"dtype_null", llama, {{"dtype", "null"}, {"torch_dtype", "null"}}},
      {"class_unknown", llama, {{"architectures", "null"}}},
      {"class_of_base_model", llama, {{"architectures", R"(["LlamaModel"])"}}},
      {"class_of_the_first_llamas", llama, {{"architectures", R"(["LLaMAForCausalLM"])"}}},
      {"real_context", llama, {{"max_position_embeddings", "64.0"}}},
      {"partial_rotation", llama, {{"partial_rotary_factor", "0.5"}}},
      {"rope_old", llama, {{"rope_parameters", nullptr}, {"rope_theta", "10000"}, {"rope_scaling", "null"}}},
      {"rope_default_with_leftovers",
       llama,
       {{"rope_parameters", R"({"type": "default", "rope_theta": 10000, "factor": 2.0, "mrope_section": [1, 1]})"}}},
      {"rope_absent", llama, {{"rope_parameters", nullptr}}},
      {"rope_type_null", llama, {{"rope_parameters", R"({"rope_type": null, "rope_theta": 10000.0})"}}},
      {"rope_linear", llama, {{"rope_parameters", R"({"rope_type": "linear", "factor": 1})"}}},
      {"rope_dynamic_short", llama, {{"rope_scaling", R"({"type": "dynamic", "factor": 4.0})"}}},
      {"rope_longrope_short",
       llama,
       {{"rope_scaling",
         R"({"rope_type": "longrope", "short_factor": [1, 1, 1, 1], "long_factor": [2, 2, 2, 2], "attention_factor": 1.0})"}}},
      {"rope_longrope_long",
       llama,
       {{"rope_scaling",
         R"({"rope_type": "longrope", "factor": null, "short_factor": [3, 1, 1, 1], "long_factor": [1, 1, 1, 1], "attention_factor": 1,
                            "original_max_position_embeddings": 8.0})"}}},
      {"rope_proportional", llama, {{"rope_scaling", R"({"rope_type": "proportional"})"}}},
      {"rope_yarn",
       llama,
       {{"rope_scaling",
         R"({"rope_type": "yarn", "factor": 1.0, "beta_fast": null, "beta_slow": 0, "truncate": null})"}},
       1e-4},
      {"rope_llama3",
       llama,
       {{"rope_scaling",
         R"({"rope_type": "llama3", "factor": 1.0, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 32.0})"}},
       1e-4},
      {"defaults_of_llama",
       llama,
       {{"hidden_act", nullptr},
        {"attention_bias", nullptr},
        {"mlp_bias", nullptr},
        {"tie_word_embeddings", nullptr},
        {"head_dim", nullptr},
        {"rms_norm_eps", nullptr},
        {"initializer_range", nullptr},
        {"pretraining_tp", nullptr}}},
      {"nulls_of_llama",
       llama,
       {{"hidden_act", "null"},
        {"attention_bias", "null"},
        {"mlp_bias", "null"},
        {"tie_word_embeddings", "null"},
        {"head_dim", "null"},
        {"rms_norm_eps", "null"}}},
      {"neutral_fields",
       llama,
       {{"pretraining_tp", "4"},
        {"attn_logit_softcapping", "false"},
        {"no_rope_layers", "[]"},
        {"per_layer_config", "{}"}}},
      {"window_real", mistral, {{"sliding_window", "4096.0"}}},
      {"window_absent",
       mistral,
       {{"sliding_window", nullptr}, {"rms_norm_eps", nullptr}, {"rope_parameters", nullptr}}},
      {"window_null", mistral, {{"sliding_window", "null"}}},
      {"window_off",
       qwen3,
       {{"use_sliding_window", "false"}, {"sliding_window", "0"}, {"max_window_layers", "0"}, {"layer_types", "null"}}},
      {"mixture_steps",
       qwen3_moe,
       {{"decoder_sparse_step", nullptr}, {"mlp_only_layers", "[7, -1]"}, {"norm_topk_prob", nullptr}}},
      {"mixture_counts",
       qwen3_moe,
       {{"num_local_experts", nullptr}, {"num_experts", "4"}, {"mlp_only_layers", "null"}}},
      {"experts_of_a_token", mixtral, {{"num_experts_per_tok", nullptr}}},
  };
}

class ConfigVariants : public testing::TestWithParam<ConfigVariant> {};

TEST_P(ConfigVariants, GiveTheSameLogits) {
  const ConfigVariant& variant = GetParam();
  const std::vector<float> expected = EditedCase(variant.base).logits();
  EditedCase edited(variant.base);
  for (const auto& [key, json] : variant.fields) {
    if (json) edited.set(key, json);
    else edited.config.erase(key);
  }
  const std::string more = variant.more;
  for (const char* key : {"initializer_range", "attention_dropout"})
    if (more.find(key) != std::string::npos) edited.config.erase(key);
  edited.more_config = more;
  EXPECT_LE(test::largest_difference(edited.logits(), expected), variant.tolerance);
}

INSTANTIATE_TEST_SUITE_P(All, ConfigVariants, testing::ValuesIn(config_variants()),
                         [](const auto& test) { return test.param.name; });

ModelConfig config_of_text(const std::string& text) {
  const test::ScratchFolder scratch;
  return load_config_file(scratch.file("config.json", text));
}

/// A configuration with the fields that have no default.
ModelConfig smallest(std::string_view type, std::string_view fields = "") {
  return config_of_text(fmt::format(
      R"({{"model_type":"{}","vocab_size":8,"hidden_size":256,"intermediate_size":8,"num_hidden_layers":2,"num_attention_heads":32{}}})",
      type, fields));
}

TEST(ConfigFields, FillsInTheDefaultsOfTransformersClasses) {
  EXPECT_EQ(smallest("llama").kv_heads, 32);
  EXPECT_EQ(smallest("mistral").kv_heads, 8);
  EXPECT_EQ(smallest("mixtral").kv_heads, 8);
  EXPECT_EQ(smallest("qwen2").kv_heads, 32);
  EXPECT_EQ(smallest("qwen3").kv_heads, 32);
  EXPECT_EQ(smallest("qwen3_moe").kv_heads, 4);
  EXPECT_EQ(smallest("mistral", R"(,"num_key_value_heads":null)").kv_heads, 32);
  EXPECT_EQ(smallest("qwen3").head_dim, 128);
  EXPECT_EQ(smallest("qwen3_moe").head_dim, 8);
  EXPECT_EQ(smallest("mixtral").head_dim, 8);
  EXPECT_EQ(test::windows_of(smallest("mistral")), (std::vector<std::int64_t>{4096, 4096}));
  EXPECT_EQ(test::windows_of(smallest("mixtral")), (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(smallest("mixtral").experts, 8);
  EXPECT_EQ(smallest("mixtral").experts_per_token, 2);
  EXPECT_EQ(smallest("mixtral").rope.theta, 1e6);
  const ModelConfig qwen3_moe = smallest("qwen3_moe");
  EXPECT_EQ(qwen3_moe.experts, 128);
  EXPECT_EQ(qwen3_moe.experts_per_token, 8);
  EXPECT_EQ(qwen3_moe.expert_intermediate_size, 768);
  EXPECT_EQ(test::sparse_layers(qwen3_moe), (std::vector<bool>{true, true}));
  EXPECT_FALSE(test::mixture_of(qwen3_moe.decoder).renormalize);
  const DecoderModel
      gemma2 = smallest("gemma2").decoder,
      plain = smallest("gemma2",
                       R"(,"sliding_window":null,)"
                       R"("attn_logit_softcapping":null,"final_logit_softcapping":null,"tie_word_embeddings":false)")
                  .decoder;
  EXPECT_TRUE(gemma2.is_tied() && !plain.is_tied());
  EXPECT_EQ(gemma2.logit_softcap, 30);
  EXPECT_EQ(plain.logit_softcap, 0);
  EXPECT_EQ(test::attention_of(gemma2).softcap, 50);
  EXPECT_EQ(test::attention_of(plain).softcap, 0);
  EXPECT_EQ(test::attention_of(gemma2).scale, 1.0 / 16);
  EXPECT_EQ(test::attention_of(gemma2).head_dim, 256);
  EXPECT_EQ(smallest("gemma2").kv_heads, 4);
  EXPECT_EQ(test::windows_of(smallest("gemma2")), (std::vector<std::int64_t>{4096, 0}));
  EXPECT_EQ(test::attention_of(plain).window, 0);
  EXPECT_EQ(smallest("mistral").max_position_embeddings, 131072);
  EXPECT_EQ(smallest("qwen2").max_position_embeddings, 32768);
  const std::string six =
      R"({"model_type":"mistral","vocab_size":8,"hidden_size":12,"intermediate_size":8,"num_hidden_layers":1,"num_attention_heads":6})";
  test::expect_error(Status::invalid_file,
                     {"num_key_value_heads: expected a divisor of num_attention_heads 6, found none, which means 8"},
                     [&] { config_of_text(six); });
}

TEST(ConfigFields, LongRopeTakesItsFactorFromTheLengths) {
  const RopeParameters rope =
      smallest("llama", R"(,"max_position_embeddings":4096,"original_max_position_embeddings":1024,"rope_scaling":)"
                        R"({"type":"longrope","short_factor":[1,1,1,1],"long_factor":[1,1,1,1]})")
          .rope;
  EXPECT_EQ(rope.scaling, RopeScaling::longrope);
  EXPECT_EQ(rope.factor, 4);
  EXPECT_EQ(rope.original_max_position_embeddings, 1024);
  EXPECT_EQ(rope.short_factors, std::vector<double>(4, 1.0));
  EXPECT_FALSE(rope.attention_factor.has_value());
}

TEST(ConfigFields, BrokenGenerationSettingsAreIgnored) {
  EditedCase edited("bos_out");
  edited.set("eos_token_id", "7");
  const test::ScratchFolder scratch;
  edited.write(scratch);
  for (const char* text :
       {"", "{}", "[]", "{\"eos_token_id\": null}", "{\"eos_token_id\": \"</s>\"}", "{\"eos_token_id\": [500]}"}) {
    scratch.file("generation_config.json", text);
    EXPECT_EQ(load_config(scratch.path()).eos_ids, std::vector<std::int32_t>{7}) << text;
  }
  scratch.file("generation_config.json", "{\"eos_token_id\": [500, 3], \"temperature\": NaN}");
  EXPECT_EQ(load_config(scratch.path()).eos_ids, std::vector<std::int32_t>{3});
}

TEST(ConfigFields, NumbersThatAreReadMustBeFinite) {
  EditedCase edited("bos_out");
  edited.config.erase("rms_norm_eps");
  const test::ScratchFolder scratch;
  for (const char* number : {"NaN", "Infinity", "-Infinity"}) {
    edited.more_config = std::string("\"rms_norm_eps\": ") + number;
    edited.write(scratch);
    test::expect_error(Status::invalid_file, {"config.json: rms_norm_eps: expected a finite number, found ", number},
                       [&] { load_config(scratch.path()); });
  }
}

TEST(ConfigFields, RotationThatTransformersCannotComputeIsRefused) {
  EditedCase edited("bos_out");
  edited.set("rope_parameters", R"({"rope_type": "linear", "factor": 2, "partial_rotary_factor": 0.5})");
  const test::ScratchFolder scratch;
  edited.write(scratch);
  test::expect_error(Status::unsupported, {"rope_parameters: expected partial_rotary_factor 1"},
                     [&] { load_config(scratch.path()); });
}

}  // namespace
}  // namespace cermet
