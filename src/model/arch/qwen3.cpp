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
          config.qk_norm = true;
          config.qkv_bias = config.o_bias = config_field::flag(root, "attention_bias", false);
          config_field::windows_of_upper_layers(root, config);
        },
};

}  // namespace cermet
