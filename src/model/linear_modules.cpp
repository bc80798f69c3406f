#include "model/linear_modules.hpp"

#include <fmt/format.h>

#include <utility>

namespace cermet {
namespace {

using Role = LinearModule::Role;

class ModuleList {
 public:
  explicit ModuleList(const ModelConfig& config) : config_(config) {}

  void add_layer(std::int64_t layer) {
    layer_ = layer;
    add_attention(fmt::format("model.layers.{}.self_attn.", layer));
    if (!config_.sparse[static_cast<std::size_t>(layer)]) {
      const FeedForwardNames names = dense_names(config_, layer);
      const std::string prefix = parent_of(names.gate);
      add_feed_forward(names, config_.intermediate_size, config_.mlp_bias, prefix + "gate_up", prefix + "down");
      return;
    }
    const std::string router = router_name(config_, layer);
    add({.name = router,
         .role = Role::router,
         .rows = config_.experts,
         .columns = config_.hidden_size,
         .group = router,
         .input_group = router});
    for (expert_ = 0; expert_ < config_.experts; ++expert_) {
      const std::string group = parent_of(router) + "experts";
      add_feed_forward(expert_names(config_, layer, expert_), config_.expert_intermediate_size, false, group, group);
    }
    expert_ = -1;
  }

  void add_head() {
    layer_ = -1;
    add({.name = "lm_head",
         .role = Role::head,
         .rows = config_.vocab_size,
         .columns = config_.hidden_size,
         .group = "lm_head",
         .input_group = "lm_head"});
  }

  std::vector<LinearModule> take() { return std::move(modules_); }

 private:
  static std::string parent_of(const std::string& name) { return name.substr(0, name.rfind('.') + 1); }

  void add(LinearModule module) {
    module.layer = layer_;
    module.expert = expert_;
    modules_.push_back(std::move(module));
  }

  void add_attention(const std::string& prefix) {
    const std::int64_t query = config_.heads * config_.head_dim, key = config_.kv_heads * config_.head_dim;
    const std::string group = prefix + "qkv", output = prefix + "o_proj";
    for (const auto& [name, rows] : {std::pair{"q_proj", query}, {"k_proj", key}, {"v_proj", key}}) {
      add({.name = prefix + name,
           .role = Role::qkv,
           .rows = rows,
           .columns = config_.hidden_size,
           .bias = config_.qkv_bias,
           .group = group,
           .input_group = group});
    }
    add({.name = output,
         .role = Role::o,
         .rows = config_.hidden_size,
         .columns = query,
         .bias = config_.o_bias,
         .group = output,
         .input_group = output});
  }

  void add_feed_forward(const FeedForwardNames& names, std::int64_t inner, bool bias, const std::string& gate_up_group,
                        const std::string& down_group) {
    const std::string prefix = parent_of(names.gate);
    for (const std::string& name : {names.gate, names.up}) {
      add({.name = name,
           .role = Role::gate_up,
           .rows = inner,
           .columns = config_.hidden_size,
           .bias = bias,
           .group = gate_up_group,
           .input_group = prefix + "gate_up"});
    }
    add({.name = names.down,
         .role = Role::down,
         .rows = config_.hidden_size,
         .columns = inner,
         .bias = bias,
         .group = down_group,
         .input_group = prefix + "down"});
  }

  const ModelConfig& config_;
  std::int64_t layer_ = -1, expert_ = -1;
  std::vector<LinearModule> modules_;
};

}  // namespace

std::vector<LinearModule> linear_modules(const ModelConfig& config) {
  ModuleList list(config);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) list.add_layer(layer);
  if (!config.tie_word_embeddings) list.add_head();
  return list.take();
}

}  // namespace cermet
