// Llama 1 to 3 (Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023; "The Llama 3 Herd of
// Models", 2024): RMSNorm, SwiGLU, rotary positions, grouped-query attention; biases only where config.json asks.
#include "model/arch/architecture.hpp"
#include "model/arch/fields.hpp"

namespace cermet {

const ArchitectureDefinition llama_architecture{
    .id = Architecture::llama,
    .class_name = "LlamaForCausalLM",
    .model_type = "llama",
    .configure =
        [](Json root, ModelConfig& config) {
          const bool bias = config_field::flag(root, "attention_bias", false),
                     mlp_bias = config_field::flag(root, "mlp_bias", false);
          add_layers(config, [&](const LayerParts& layer) -> Layer {
            return {{layer.norm("input_layernorm"), layer.attention({.qkv_bias = bias, .o_bias = bias})},
                    {layer.norm("post_attention_layernorm"), layer.feed_forward(mlp_bias)}};
          });
        },
};

}  // namespace cermet
