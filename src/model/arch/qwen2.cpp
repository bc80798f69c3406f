// Qwen2 and Qwen2.5 (Yang et al., "Qwen2 Technical Report", 2024): Llama with biases on q, k and v, and optional
// sliding windows in the upper layers.
#include "model/arch/architecture.hpp"
#include "model/arch/fields.hpp"

namespace cermet {

const ArchitectureDefinition qwen2_architecture{
    .id = Architecture::qwen2,
    .class_name = "Qwen2ForCausalLM",
    .model_type = "qwen2",
    .max_position_embeddings = 32768,
    .kv_heads = 32,
    .configure =
        [](Json root, ModelConfig& config) {
          const std::vector<std::int64_t> windows = config_field::windows_of_upper_layers(root, config.layers);
          add_layers(config, [&](const LayerParts& layer) -> Layer {
            const std::int64_t window = windows[static_cast<std::size_t>(layer.index)];
            return {{layer.norm("input_layernorm"), layer.attention({.qkv_bias = true, .window = window})},
                    {layer.norm("post_attention_layernorm"), layer.feed_forward()}};
          });
        },
};

}  // namespace cermet
