// The tensors of a checkpoint by architecture: names and shapes, and what else may be stored with them.
#include "model/arch/architecture.hpp"
#include "model/checkpoint/quantization.hpp"

namespace cermet {
namespace {

std::string layer_name(std::int64_t layer) { return fmt::format("model.layers.{}.", layer); }

/// Collects tensors in order.
class List {
 public:
  explicit List(const Quantization& quantization) : quantization_(quantization) {}

  void norm(std::string name, std::int64_t size) { tensors.push_back({std::move(name) + ".weight", {size}}); }
  void linear(const std::string& name, std::int64_t rows, std::int64_t columns, bool bias = false) {
    const LinearScheme scheme = quantization_.stored() ? quantization_.of(name) : LinearScheme{};
    const bool fixed = scheme.input == LinearScheme::Input::fixed,
               modelslim = quantization_.format == Quantization::Format::modelslim;
    if (scheme.weight == LinearScheme::Weight::real || quantization_.dense.contains(name))
      tensors.push_back({name + ".weight", {rows, columns}});
    else if (quantization_.packed.contains(name)) {
      tensors.push_back({name + ".weight_packed", {rows, (columns + 3) / 4}, {DType::i32}});
      scale(name + ".weight_shape", {2}, {DType::i64}, false);
    } else
      tensors.push_back({name + ".weight",
                         {rows, columns},
                         {scheme.weight == LinearScheme::Weight::fp8 ? DType::f8_e4m3 : DType::i8}});
    if (scheme.weight == LinearScheme::Weight::real || !modelslim || !fixed) {
      if (scheme.weight != LinearScheme::Weight::real) scale(name + ".weight_scale", {rows, 1}, stored_reals, true);
      if (scheme.weight != LinearScheme::Weight::real && modelslim)
        scale(name + ".weight_offset", {rows, 1}, stored_reals, true);
      if (fixed) scale(name + ".input_scale", {1}, stored_reals, true);
      if (bias) tensors.push_back({name + ".bias", {rows}});
      return;
    }
    scale(name + ".input_scale", {1}, stored_reals, true);
    scale(name + ".input_offset", {1}, stored_reals, true);
    scale(name + ".deq_scale", {rows}, {DType::f32, DType::i64}, false);  // input_scale * weight_scale
    scale(name + ".quant_bias", {rows}, {DType::i32}, false);  // bias / deq_scale - input_offset * the row's sum
  }
  void feed_forward(const FeedForwardNames& names, std::int64_t hidden, std::int64_t intermediate, bool bias = false) {
    linear(names.gate, intermediate, hidden, bias);
    linear(names.up, intermediate, hidden, bias);
    linear(names.down, hidden, intermediate, bias);
  }
  std::vector<ExpectedTensor> tensors;

 private:
  void scale(std::string name, std::vector<std::int64_t> shape, DTypeSet allowed, bool or_one) {
    tensors.push_back({std::move(name), std::move(shape), allowed, false, or_one});
  }

  const Quantization& quantization_;
};

void add_attention(List& list, const ModelConfig& config, const std::string& prefix) {
  const std::int64_t query = config.heads * config.head_dim, key = config.kv_heads * config.head_dim;
  list.linear(prefix + "self_attn.q_proj", query, config.hidden_size, config.qkv_bias);
  list.linear(prefix + "self_attn.k_proj", key, config.hidden_size, config.qkv_bias);
  list.linear(prefix + "self_attn.v_proj", key, config.hidden_size, config.qkv_bias);
  if (config.qk_norm) {
    list.norm(prefix + "self_attn.q_norm", config.head_dim);
    list.norm(prefix + "self_attn.k_norm", config.head_dim);
  }
  list.linear(prefix + "self_attn.o_proj", config.hidden_size, query, config.o_bias);
}

void add_feed_forward(List& list, const ModelConfig& config, std::int64_t layer) {
  if (!config.sparse[static_cast<std::size_t>(layer)]) {
    list.feed_forward(dense_names(config, layer), config.hidden_size, config.intermediate_size, config.mlp_bias);
    return;
  }
  list.linear(router_name(config, layer), config.experts, config.hidden_size);
  for (std::int64_t expert = 0; expert < config.experts; ++expert) {
    list.feed_forward(expert_names(config, layer, expert), config.hidden_size, config.expert_intermediate_size);
  }
}

}  // namespace

FeedForwardNames dense_names(const ModelConfig&, std::int64_t layer) {
  const std::string prefix = layer_name(layer) + "mlp.";
  return {prefix + "gate_proj", prefix + "up_proj", prefix + "down_proj"};
}

FeedForwardNames expert_names(const ModelConfig& config, std::int64_t layer, std::int64_t expert) {
  const ExpertModules& modules = definition_of(config.architecture).expert_modules;
  const std::string prefix = fmt::format("{}{}.experts.{}.", layer_name(layer), modules.block, expert);
  return {fmt::format("{}{}", prefix, modules.gate), fmt::format("{}{}", prefix, modules.up),
          fmt::format("{}{}", prefix, modules.down)};
}

std::string router_name(const ModelConfig& config, std::int64_t layer) {
  return fmt::format("{}{}.gate", layer_name(layer), definition_of(config.architecture).expert_modules.block);
}

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) { return expected_tensors(config, {}); }

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config, const Quantization& quantization) {
  List list(quantization);
  list.tensors.push_back({"model.embed_tokens.weight", {config.vocab_size, config.hidden_size}});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = layer_name(layer);
    list.norm(prefix + "input_layernorm", config.hidden_size);
    add_attention(list, config, prefix);
    list.norm(prefix + "post_attention_layernorm", config.hidden_size);
    add_feed_forward(list, config, layer);
  }
  list.norm("model.norm", config.hidden_size);
  if (!config.tie_word_embeddings) list.linear("lm_head", config.vocab_size, config.hidden_size);
  return std::move(list.tensors);
}

}  // namespace cermet
