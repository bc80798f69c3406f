// Mixtral (Jiang et al., "Mixtral of Experts", 2024): Mistral with a mixture of experts in every layer; the chosen
// experts' weights are renormalized.
#include "model/arch/architecture.hpp"
#include "model/arch/fields.hpp"

namespace cermet {

const ArchitectureDefinition mixtral_architecture{
    .id = Architecture::mixtral,
    .class_name = "MixtralForCausalLM",
    .model_type = "mixtral",
    .rms_norm_eps = 1e-5,
    .rope_theta = 1e6,
    .max_position_embeddings = 131072,
    .kv_heads = 8,
    .expert_modules = {.block = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"},
    .configure =
        [](Json root, ModelConfig& config) {
          const std::int64_t window = config_field::sliding_window(root, 0);
          config_field::experts(root, 8, 2, config);
          config.expert_intermediate_size = config_field::size(root, "intermediate_size");
          add_layers(config, [&](const LayerParts& layer) -> Layer {
            return {{layer.norm("input_layernorm"), layer.attention({.window = window})},
                    {layer.norm("post_attention_layernorm"), layer.mixture(true)}};
          });
        },
};

}  // namespace cermet
