// Mistral (Jiang et al., "Mistral 7B", 2023): Llama without biases, and a sliding window in every layer.
#include "model/arch/architecture.hpp"
#include "model/arch/fields.hpp"

namespace cermet {

const ArchitectureDefinition mistral_architecture{
    .id = Architecture::mistral,
    .class_name = "MistralForCausalLM",
    .model_type = "mistral",
    .max_position_embeddings = 131072,
    .kv_heads = 8,
    .configure =
        [](Json root, ModelConfig& config) {
          const std::int64_t window = config_field::sliding_window(root, 4096);
          add_layers(config, [&](const LayerParts& layer) -> Layer {
            return {{layer.norm("input_layernorm"), layer.attention({.window = window})},
                    {layer.norm("post_attention_layernorm"), layer.feed_forward()}};
          });
        },
};

}  // namespace cermet
