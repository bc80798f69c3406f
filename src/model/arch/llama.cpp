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
          config.qkv_bias = config.o_bias = config_field::flag(root, "attention_bias", false);
          config.mlp_bias = config_field::flag(root, "mlp_bias", false);
        },
};

}  // namespace cermet
