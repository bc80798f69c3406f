#include "model/quantization.hpp"

#include "base/error.hpp"

namespace cermet {

const LinearScheme& Quantization::of(const std::string& module) const {
  static constexpr LinearScheme real;
  const auto found = modules.find(module);
  return found == modules.end() ? real : found->second;
}

Quantization quantize_projections(const ModelConfig& config, const LinearScheme& scheme) {
  Quantization quantization;
  const auto add = [&](const std::string& module) { quantization.modules.emplace(module, scheme); };
  const auto add_feed_forward = [&](const FeedForwardNames& names) {
    for (const std::string& module : {names.gate, names.up, names.down}) add(module);
  };
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) add(fmt::format("model.layers.{}.self_attn.{}", layer, name));
    if (!config.sparse[static_cast<std::size_t>(layer)]) add_feed_forward(dense_names(config, layer));
    else
      for (std::int64_t e = 0; e < config.experts; ++e) add_feed_forward(expert_names(config, layer, e));
  }
  return quantization;
}

}  // namespace cermet
