// Gemma 2 (Gemma Team, "Gemma 2: Improving Open Language Models at a Practical Size", 2024): RMSNorm before and after
// each block, with weights around 0; GeGLU; soft caps of scores and logits; a sliding window in every other layer;
// embeddings times the square root of their size.
#include <cmath>

#include "base/error.hpp"
#include "model/arch/architecture.hpp"
#include "model/arch/fields.hpp"

namespace cermet {
namespace {

/// Null means none.
double softcap(Json root, std::string_view key, double absent) {
  if (config_field::is_there(root, key) && !root.find(key)) return 0;
  return config_field::number(root, key, absent, 1e-6);
}

/// By layer; without `layer_types` the first, third and so on have a window.
std::vector<std::int64_t> gemma2_windows(Json root, std::int64_t layers) {
  const std::int64_t window = config_field::sliding_window(root, 4096);
  const std::optional<Json> types = root.find("layer_types");
  std::vector<std::int64_t> windows;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto i = static_cast<std::size_t>(layer);
    const bool is_named = types && i < types->as_array().size();  // the caller compares the lengths
    const bool slides = is_named ? types->at(i).as_string() == "sliding_attention" : layer % 2 == 0;
    windows.push_back(slides ? window : 0);
  }
  return windows;
}

/// Times 1 + weight.
Norm around_one(Norm norm) {
  norm.weight_offset = 1;
  return norm;
}

void configure_gemma2(Json root, ModelConfig& config) {
  if (const std::optional<Json> activation = root.find("hidden_activation");
      activation && activation->as_string() != "gelu_pytorch_tanh")
    activation->unexpected("gelu_pytorch_tanh", Status::unsupported);
  const bool bias = config_field::flag(root, "attention_bias", false);
  const double scale = 1 / std::sqrt(config_field::number(root, "query_pre_attn_scalar", 256, 1e-6)),
               score_cap = softcap(root, "attn_logit_softcapping", 50);
  const std::vector<std::int64_t> window = gemma2_windows(root, config.layers);

  DecoderModel& decoder = config.decoder;
  decoder.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
  add_layers(config, [&](const LayerParts& layer) -> Layer {
    const auto norm = [&](std::string_view name) { return around_one(layer.norm(name)); };
    Attention attention =
        layer.attention({.qkv_bias = bias, .o_bias = bias, .window = window[static_cast<std::size_t>(layer.index)]});
    attention.scale = scale;
    attention.softcap = score_cap;
    FeedForward feed_forward = layer.feed_forward();
    feed_forward.activation = Activation::gelu_tanh;
    return {{norm("input_layernorm"), attention, norm("post_attention_layernorm")},
            {norm("pre_feedforward_layernorm"), feed_forward, norm("post_feedforward_layernorm")}};
  });
  decoder.norm = around_one(decoder.norm);
  decoder.logit_softcap = softcap(root, "final_logit_softcapping", 30);
}

}  // namespace

const ArchitectureDefinition gemma2_architecture{
    .id = Architecture::gemma2,
    .class_name = "Gemma2ForCausalLM",
    .model_type = "gemma2",
    .max_position_embeddings = 8192,
    .kv_heads = 4,
    .head_dim = 256,
    .tie_word_embeddings = true,
    .fields = {"hidden_act", "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"},
    .configure = configure_gemma2,
};

}  // namespace cermet
