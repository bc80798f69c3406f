// Qwen3 (Yang et al., "Qwen3 Technical Report", 2025): RMSNorm over each head of q and k before the rotation, a head
// size of its own, no biases by default.
#include "model/arch/architecture.hpp"
#include "model/arch/fields.hpp"

namespace cermet {

const ArchitectureDefinition qwen3_architecture{
    .id = Architecture::qwen3,
    .class_name = "Qwen3ForCausalLM",
    .model_type = "qwen3",
    .max_position_embeddings = 32768,
    .kv_heads = 32,
    .head_dim = 128,
    .configure =
        [](Json root, ModelConfig& config) {
          const bool bias = config_field::flag(root, "attention_bias", false);
          const std::vector<std::int64_t> windows = config_field::windows_of_upper_layers(root, config.layers);
          add_layers(config, [&](const LayerParts& layer) -> Layer {
            return {{layer.norm("input_layernorm"),
                     layer.attention({.qkv_bias = bias,
                                      .o_bias = bias,
                                      .qk_norm = true,
                                      .window = windows[static_cast<std::size_t>(layer.index)]})},
                    {layer.norm("post_attention_layernorm"), layer.feed_forward()}};
          });
        },
};

}  // namespace cermet
