// Skeleton of a model architecture: a Llama with normalized heads and biases that config.json may switch on. Copy to
// src/model/arch/NAME.cpp and add the row X(NAME) to src/model/arch/architectures.inc. Sizes, rotary parameters and
// limits are parsed for every architecture alike; this file reads the fields that are its own, and puts the layers
// together from blocks (src/model/blocks.hpp). src/model/arch/gemma2.cpp sets more of their members.
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
          const bool bias = config_field::flag(root, "attention_bias", false);
          const std::int64_t window = config_field::sliding_window(root, 0);
          add_layers(config, [&](const LayerParts& layer) -> Layer {
            return {
                {layer.norm("input_layernorm"), layer.attention({.qkv_bias = bias, .qk_norm = true, .window = window})},
                {layer.norm("post_attention_layernorm"), layer.feed_forward()}};
          });
        },
};

}  // namespace cermet
