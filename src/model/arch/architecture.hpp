// What sets one architecture apart from the others: the fields of config.json that only it reads, and the blocks that
// its layers are made of. A new one is a row in architectures.inc and a file NAME.cpp here that defines
// `NAME_architecture`; examples/skeleton/model/arch/starling.cpp is one to copy. It reads like the model, top to
// bottom:
//   1. its fields, read with config_field:: and refused where nothing here computes what they ask for;
//   2. add_layers(): for each layer a list of blocks {norm, body} or {norm, body, post_norm}, whose parts LayerParts
//      makes with the sizes of config.json, and in which members say what differs (model/blocks.hpp);
//   3. embedding_scale, logit_softcap and the like of config.decoder.
// What follows from the blocks is not the architecture's: graph, tensors, ranks' parts, quantization. What no block can
// say yet is a member of one, its operator in decoder_layer.cpp, and a case in tests/model/plain_decoder.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.hpp"
#include "io/json_file.hpp"
#include "model/config.hpp"

namespace cermet {

/// Names below "model.layers.N." of a mixture of experts: BLOCK.gate is the router, BLOCK.experts.E.{gate,up,down} the
/// linear modules of expert E.
struct ExpertModules {
  std::string_view block = "mlp", gate = "gate_proj", up = "up_proj", down = "down_proj";
};

struct ArchitectureDefinition {
  Architecture id;
  std::string_view class_name;  ///< in config.json's `architectures`
  std::string_view model_type;  ///< in config.json's `model_type`
  // Values of fields that config.json may leave out: those of transformers' class.
  double rms_norm_eps = 1e-6, rope_theta = 10000;
  std::int64_t max_position_embeddings = 2048;
  std::int64_t kv_heads = 0;  ///< 0: num_attention_heads
  std::int64_t head_dim = 0;  ///< 0: hidden_size / num_attention_heads
  bool tie_word_embeddings = false;
  ExpertModules expert_modules = {};
  /// Fields that other architectures lack and this one reads; elsewhere they are refused unless they change nothing.
  std::vector<std::string_view> fields = {};
  /// Adds the layers to config.decoder, and sets the numbers of experts where there are some. Sizes, heads, embedding,
  /// final norm and head are there already.
  void (*configure)(Json root, ModelConfig& config);
};

/// Options of attention: biases, norms of each head before the rotation, keys that a query sees.
struct AttentionOptions {
  bool qkv_bias = false, o_bias = false;
  bool qk_norm = false;
  std::int64_t window = 0;
};

/// Parts of layer `index` with the sizes of config.json, under the names below "model.layers.N." that transformers'
/// Llama gives them. An architecture sets what differs in members of the results.
class LayerParts {
 public:
  LayerParts(const ModelConfig& config, std::int64_t index);

  Norm norm(std::string_view name) const;                           ///< NAME
  Attention attention(const AttentionOptions& options = {}) const;  ///< self_attn.{q,k,v,o}_proj, {q,k}_norm
  FeedForward feed_forward(bool bias = false) const;                ///< mlp.{gate,up,down}_proj
  Mixture mixture(bool renormalize) const;                          ///< as the architecture's ExpertModules say

  const std::int64_t index;

 private:
  FeedForward feed_forward_of(std::string_view gate, std::string_view up, std::string_view down, std::int64_t inner,
                              bool bias) const;

  const ModelConfig& config_;
  std::string prefix_;
};

/// Adds config.layers layers to its decoder.
void add_layers(ModelConfig& config, FunctionRef<Layer(const LayerParts&)> layer);

const ArchitectureDefinition& definition_of(Architecture architecture);
/// In the order of architectures.inc.
std::span<const ArchitectureDefinition* const> all_architectures();

#define X(name) extern const ArchitectureDefinition name##_architecture;
#include "model/arch/architectures.inc"
#undef X

}  // namespace cermet
