#include "model/arch/architecture.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace cermet {

std::span<const ArchitectureDefinition* const> all_architectures() {
  static constexpr std::array definitions{
#define X(name) &name##_architecture,
#include "model/arch/architectures.inc"
#undef X
  };
  return definitions;
}

const ArchitectureDefinition& definition_of(Architecture architecture) {
  return *all_architectures()[static_cast<std::size_t>(architecture)];
}

LayerParts::LayerParts(const ModelConfig& config, std::int64_t layer)
    : index(layer), config_(config), prefix_(fmt::format("model.layers.{}.", layer)) {}

Norm LayerParts::norm(std::string_view name) const {
  return {fmt::format("{}{}", prefix_, name), config_.hidden_size, config_.rms_norm_eps};
}

Attention LayerParts::attention(const AttentionOptions& options) const {
  const std::string module = prefix_ + "self_attn.";
  const std::int64_t hidden = config_.hidden_size, query = config_.heads * config_.head_dim,
                     key = config_.kv_heads * config_.head_dim;
  Attention attention{.q = {module + "q_proj", query, hidden, options.qkv_bias},
                      .k = {module + "k_proj", key, hidden, options.qkv_bias},
                      .v = {module + "v_proj", key, hidden, options.qkv_bias},
                      .o = {module + "o_proj", hidden, query, options.o_bias},
                      .heads = config_.heads,
                      .kv_heads = config_.kv_heads,
                      .head_dim = config_.head_dim,
                      .rotary_dim = config_.rope.rotary_dim,
                      .scale = 1.0 / std::sqrt(static_cast<double>(config_.head_dim)),
                      .window = options.window};
  if (options.qk_norm) {
    attention.q_norm = {module + "q_norm", config_.head_dim, config_.rms_norm_eps};
    attention.k_norm = {module + "k_norm", config_.head_dim, config_.rms_norm_eps};
  }
  return attention;
}

FeedForward LayerParts::feed_forward_of(std::string_view gate, std::string_view up, std::string_view down,
                                        std::int64_t inner, bool bias) const {
  const auto name = [&](std::string_view part) { return fmt::format("{}{}", prefix_, part); };
  return {{name(gate), inner, config_.hidden_size, bias},
          {name(up), inner, config_.hidden_size, bias},
          {name(down), config_.hidden_size, inner, bias}};
}

FeedForward LayerParts::feed_forward(bool bias) const {
  return feed_forward_of("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", config_.intermediate_size, bias);
}

Mixture LayerParts::mixture(bool renormalize) const {
  const ExpertModules& modules = definition_of(config_.architecture).expert_modules;
  const auto of_expert = [&](std::string_view part) { return fmt::format("{}.experts.*.{}", modules.block, part); };
  return {.router = {fmt::format("{}{}.gate", prefix_, modules.block), config_.experts, config_.hidden_size},
          .each = feed_forward_of(of_expert(modules.gate), of_expert(modules.up), of_expert(modules.down),
                                  config_.expert_intermediate_size, false),
          .experts_per_token = config_.experts_per_token,
          .renormalize = renormalize,
          .count = config_.experts};
}

void add_layers(ModelConfig& config, FunctionRef<Layer(const LayerParts&)> layer) {
  for (std::int64_t i = 0; i < config.layers; ++i) config.decoder.layers.push_back(layer(LayerParts(config, i)));
}

}  // namespace cermet
