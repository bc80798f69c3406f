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
    .configure = [](Json root, ModelConfig& config) { config_field::window_of_every_layer(root, 4096, config); },
};

}  // namespace cermet
