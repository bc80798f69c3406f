// The parts of a layer under the names that transformers' Llama gives them, with the sizes of config.json. What differs
// in an architecture is an option, or a member that it sets afterwards.
#pragma once

#include <string_view>

#include "base/function_ref.hpp"
#include "model/config.hpp"

namespace cermet {

struct AttentionOptions {
  bool qkv_bias = false, o_bias = false;
  bool qk_norm = false;
  std::int64_t window = 0;
};

/// Of layer `index`: names below "model.layers.N.".
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

}  // namespace cermet
