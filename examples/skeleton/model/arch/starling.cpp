// Skeleton of a model architecture: a Llama with normalized heads and biases that config.json may switch on. Copy to
// src/model/arch/NAME.cpp and add the row X(NAME) to src/model/arch/architectures.inc. Sizes, rotary parameters and
// limits are parsed for every architecture alike; this file says what differs. Anything that ModelConfig cannot express
// yet needs a field there and its use in src/model/decoder.cpp.
#include "model/arch/architecture.hpp"
#include "model/arch/fields.hpp"

namespace cermet {

const ArchitectureDefinition starling_architecture{
    .id = Architecture::starling,
    .class_name = "StarlingForCausalLM",
    .model_type = "starling",
    // Values of fields that config.json may leave out; others have the same default everywhere.
    .rms_norm_eps = 1e-5,
    .max_position_embeddings = 8192,
    .configure =
        [](Json root, ModelConfig& config) {
          config.qk_norm = true;
          config.qkv_bias = config_field::flag(root, "attention_bias", false);
          config_field::window_of_every_layer(root, 0, config);
        },
};

}  // namespace cermet
