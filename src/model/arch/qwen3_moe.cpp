// Qwen3-MoE (Yang et al., "Qwen3 Technical Report", 2025): Qwen3 whose feed-forward part is a mixture of experts in
// every `decoder_sparse_step`-th layer that `mlp_only_layers` does not name. A sliding window, where used, is in every
// layer.
#include "model/arch/architecture.hpp"
#include "model/arch/fields.hpp"

namespace cermet {
namespace {

/// Layers with a mixture.
std::vector<bool> sparse_layers(Json root, std::int64_t layers) {
  std::vector<bool> sparse;
  const std::int64_t step = config_field::optional_size(root, "decoder_sparse_step").value_or(1);
  for (std::int64_t layer = 0; layer < layers; ++layer) sparse.push_back((layer + 1) % step == 0);
  const std::optional<Json> dense_layers = root.find("mlp_only_layers");
  if (!dense_layers) return sparse;
  for (Json layer : dense_layers->as_array())
    if (const std::int64_t index = layer.as_integer(); index >= 0 && index < layers)
      sparse[static_cast<std::size_t>(index)] = false;
  return sparse;
}

void configure(Json root, ModelConfig& config) {
  const bool bias = config_field::flag(root, "attention_bias", false);
  const std::int64_t window =
      config_field::flag(root, "use_sliding_window", false) ? config_field::sliding_window(root, 4096) : 0;
  config_field::experts(root, 128, 8, config);
  config.expert_intermediate_size = config_field::optional_size(root, "moe_intermediate_size").value_or(768);
  const bool renormalize = config_field::flag(root, "norm_topk_prob", false);
  const std::vector<bool> sparse = sparse_layers(root, config.layers);
  add_layers(config, [&](const LayerParts& layer) -> Layer {
    const Block attention{layer.norm("input_layernorm"),
                          layer.attention({.qkv_bias = bias, .o_bias = bias, .qk_norm = true, .window = window})};
    const Norm norm = layer.norm("post_attention_layernorm");
    if (sparse[static_cast<std::size_t>(layer.index)]) return {attention, {norm, layer.mixture(renormalize)}};
    return {attention, {norm, layer.feed_forward()}};
  });
}

}  // namespace

const ArchitectureDefinition qwen3_moe_architecture{
    .id = Architecture::qwen3_moe,
    .class_name = "Qwen3MoeForCausalLM",
    .model_type = "qwen3_moe",
    .max_position_embeddings = 32768,
    .kv_heads = 4,
    .configure = configure,
};

}  // namespace cermet
