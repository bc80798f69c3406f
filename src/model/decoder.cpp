#include "model/decoder.hpp"

#include <cmath>

#include "base/error.hpp"

namespace cermet {
namespace {

Dim tokens() { return Dim::symbol("T"); }

/// Builds layer after layer; members are what all layers share.
class Builder {
 public:
  Builder(const ModelConfig& config, const DecoderTypes& types, const DecoderState& state) : config_(config), types_(types), state_(state) {}

  DecoderGraph build() {
    out_.graph.name = config_.architecture_name;
    declare_inputs();
    ValueId hidden = graph().apply(OpKind::embedding, {ids_, embedding_table()}, {{"out_dtype", "f32"}}, "embedding");
    ValueId delta;  // what the previous part adds to the residual stream
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      const Graph::Scope scope(graph(), fmt::format("layers.{}", layer));
      const std::string prefix = fmt::format("model.layers.{}.", layer);
      delta = attention(layer, normalize(hidden, delta, prefix + "input_layernorm.weight"));
      const ValueId y = normalize(hidden, delta, prefix + "post_attention_layernorm.weight");
      delta = config_.sparse[static_cast<std::size_t>(layer)] ? mixture(layer, y) : feed_forward(layer, y);
    }
    const ValueId y = normalize(hidden, delta, "model.norm.weight");
    const ValueId rows = graph().apply(OpKind::gather, {y, logit_rows_}, {{"axis", std::int64_t{0}}}, "last_hidden");
    const std::string head = config_.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight";
    const ValueId logits =
        graph().apply(OpKind::linear, {rows, matrix(head, {head}, config_.vocab_size, config_.hidden_size)}, {{"out_dtype", "f32"}}, "lm_head");
    graph().add_output(decoder_io::logits, logits);
    return std::move(out_);
  }

 private:
  Graph& graph() { return out_.graph; }

  void declare_inputs() {
    const Dim b = Dim::symbol("B");
    ids_ = graph().add_input(decoder_io::ids, {DType::i32, {tokens()}});
    positions_ = graph().add_input(decoder_io::positions, {DType::i32, {tokens()}});
    slots_ = graph().add_input(decoder_io::slots, {DType::i32, {tokens()}});
    block_tables_ = graph().add_input(decoder_io::block_tables, {DType::i32, {b, state_.pages_per_sequence}});
    context_lens_ = graph().add_input(decoder_io::context_lens, {DType::i32, {b}});
    query_starts_ = graph().add_input(decoder_io::query_starts, {DType::i32, {b + Dim(1)}});
    logit_rows_ = graph().add_input(decoder_io::logit_rows, {DType::i32, {Dim::symbol("R")}});
    const TensorType table{DType::f32, {state_.table_positions, config_.rope.rotary_dim / 2}};
    cos_ = graph().add_input(decoder_io::rope_cos, table);
    sin_ = graph().add_input(decoder_io::rope_sin, table);
  }

  ValueId constant(const std::string& name, TensorType type, WeightSource source) {
    if (const ValueId known = graph().find(name)) return known;
    out_.sources.emplace(name, std::move(source));
    return graph().add_constant(name, std::move(type));
  }

  /// A weight matrix [rows, columns] stacked from checkpoint tensors.
  ValueId matrix(const std::string& name, std::vector<std::string> parts, std::int64_t rows, std::int64_t columns) {
    return constant(name, {types_.weights, {rows, columns}}, {{std::move(parts)}});
  }

  /// A vector, widened to float32: it is small, and every kernel computes in float32.
  ValueId vector(const std::string& name, std::int64_t length) { return constant(name, {DType::f32, {length}}, {{{name}}}); }

  ValueId embedding_table() { return matrix("model.embed_tokens.weight", {"model.embed_tokens.weight"}, config_.vocab_size, config_.hidden_size); }

  std::string operand_type() const { return std::string(name_of(types_.operands)); }

  /// y = module(x) with float32 or `out` results; `module` names the checkpoint's tensors.
  ValueId project(ValueId x, const std::string& module, std::int64_t rows, std::int64_t columns, bool bias, const std::string& out = "f32") {
    const ValueId weight = matrix(module + ".weight", {module + ".weight"}, rows, columns);
    const ValueId b = bias ? vector(module + ".bias", rows) : ValueId{};
    return graph().apply(OpKind::linear, {x, weight, b}, {{"out_dtype", out}}, module);
  }

  /// Queries, keys and values in one product: their weights stacked by rows.
  ValueId project_qkv(ValueId y, const std::string& module, std::int64_t rows) {
    const auto parts = [&](const char* kind) {
      return std::vector<std::string>{module + "q_proj." + kind, module + "k_proj." + kind, module + "v_proj." + kind};
    };
    const ValueId weight = matrix(module + "qkv_proj.weight", parts("weight"), rows, config_.hidden_size);
    const ValueId bias = config_.qkv_bias ? constant(module + "qkv_proj.bias", {DType::f32, {rows}}, {{parts("bias")}}) : ValueId{};
    return graph().apply(OpKind::linear, {y, weight, bias}, {{"out_dtype", "f32"}}, module + "qkv_proj");
  }

  /// Adds what is pending to the residual stream and normalises it: the left operand of the next products.
  ValueId normalize(ValueId& hidden, ValueId delta, const std::string& weight) {
    const ValueId w = vector(weight, config_.hidden_size);
    const Attributes attributes{{"eps", config_.rms_norm_eps}, {"out_dtype", operand_type()}};
    if (!delta) return graph().apply(OpKind::rms_norm, {hidden, w}, attributes);
    const std::vector<ValueId> results = graph().apply_all(OpKind::add_rms_norm, {delta, hidden, w}, attributes);
    hidden = results[1];
    return results[0];
  }

  ValueId heads_of(ValueId x, std::int64_t heads) { return graph().apply(OpKind::reshape, {x}, {{"shape", Ints{0, heads, config_.head_dim}}}); }

  ValueId head_norm(ValueId x, const std::string& weight) {
    if (!config_.qk_norm) return x;
    return graph().apply(OpKind::rms_norm, {x, vector(weight, config_.head_dim)}, {{"eps", config_.rms_norm_eps}});
  }

  ValueId attention(std::int64_t layer, ValueId y) {
    const Graph::Scope scope(graph(), "attention");
    const std::string module = fmt::format("model.layers.{}.self_attn.", layer);
    const std::int64_t q_size = config_.heads * config_.head_dim, kv_size = config_.kv_heads * config_.head_dim;
    const std::vector<ValueId> qkv = graph().apply_all(OpKind::split, {project_qkv(y, module, q_size + 2 * kv_size)},
                                                       {{"axis", std::int64_t{-1}}, {"sizes", Ints{q_size, kv_size, kv_size}}});
    const ValueId q = head_norm(heads_of(qkv[0], config_.heads), module + "q_norm.weight");
    const ValueId k = head_norm(heads_of(qkv[1], config_.kv_heads), module + "k_norm.weight");
    const std::vector<ValueId> rotated = graph().apply_all(OpKind::rope, {q, k, cos_, sin_, positions_}, {{"rotary_dim", config_.rope.rotary_dim}});
    const TensorType cache{types_.cache, {state_.blocks, config_.kv_heads, state_.block_size, config_.head_dim}};
    const ValueId k_cache = graph().add_input(decoder_io::key_cache(layer), cache);
    const ValueId v_cache = graph().add_input(decoder_io::value_cache(layer), cache);
    const std::vector<ValueId> written = graph().apply_all(OpKind::kv_cache_write, {rotated[1], heads_of(qkv[2], config_.kv_heads), k_cache, v_cache, slots_});
    const ValueId o = graph().apply(OpKind::incre_flash_attention, {rotated[0], written[0], written[1], block_tables_, context_lens_, query_starts_},
                                    {{"scale", 1.0 / std::sqrt(static_cast<double>(config_.head_dim))},
                                     {"window", config_.window[static_cast<std::size_t>(layer)]},
                                     {"out_dtype", operand_type()}});
    const ValueId flat = graph().apply(OpKind::reshape, {o}, {{"shape", Ints{0, q_size}}});
    return project(flat, module + "o_proj", config_.hidden_size, q_size, config_.o_bias);
  }

  ValueId feed_forward(std::int64_t layer, ValueId y) {
    const Graph::Scope scope(graph(), "feed_forward");
    const FeedForwardNames names = dense_names(config_, layer);
    const std::int64_t f = config_.intermediate_size, h = config_.hidden_size;
    const ValueId gate = matrix(names.gate + ".weight", {names.gate + ".weight"}, f, h), up = matrix(names.up + ".weight", {names.up + ".weight"}, f, h);
    const ValueId gate_bias = config_.mlp_bias ? vector(names.gate + ".bias", f) : ValueId{};
    const ValueId up_bias = config_.mlp_bias ? vector(names.up + ".bias", f) : ValueId{};
    const ValueId a = graph().apply(OpKind::dual_linear, {y, gate, up, gate_bias, up_bias}, {{"activation", "silu"}, {"out_dtype", operand_type()}});
    return project(a, names.down, h, f, config_.mlp_bias);
  }

  ValueId mixture(std::int64_t layer, ValueId y) {
    const Graph::Scope scope(graph(), "experts");
    const std::string router = router_name(config_, layer);
    const ValueId logits = project(y, router, config_.experts, config_.hidden_size, false);
    const std::vector<ValueId> chosen =
        graph().apply_all(OpKind::topk_gating, {logits}, {{"k", config_.experts_per_token}, {"renormalize", config_.renormalize_experts}});
    const std::vector<ValueId> sorted = graph().apply_all(OpKind::moe_permute, {y, chosen[1]}, {{"experts", config_.experts}});
    WeightSource gate_up, down;
    for (std::int64_t e = 0; e < config_.experts; ++e) {
      const FeedForwardNames names = expert_names(config_, layer, e);
      gate_up.slices.push_back({names.gate + ".weight", names.up + ".weight"});
      down.slices.push_back({names.down + ".weight"});
    }
    const std::int64_t f = config_.expert_intermediate_size, h = config_.hidden_size;
    const std::string name = fmt::format("model.layers.{}.experts.", layer);
    const ValueId w_gate_up = constant(name + "gate_up", {types_.weights, {config_.experts, 2 * f, h}}, std::move(gate_up));
    const ValueId w_down = constant(name + "down", {types_.weights, {config_.experts, h, f}}, std::move(down));
    const ValueId both = graph().apply(OpKind::grouped_linear, {sorted[0], w_gate_up, sorted[1]}, {{"out_dtype", "f32"}});
    const ValueId a = graph().apply(OpKind::silu_and_mul, {both}, {{"out_dtype", operand_type()}});
    const ValueId expert_out = graph().apply(OpKind::grouped_linear, {a, w_down, sorted[1]}, {{"out_dtype", "f32"}});
    return graph().apply(OpKind::moe_unpermute, {expert_out, sorted[2], chosen[0]});
  }

  const ModelConfig& config_;
  const DecoderTypes& types_;
  const DecoderState& state_;
  DecoderGraph out_;
  ValueId ids_, positions_, slots_, block_tables_, context_lens_, query_starts_, logit_rows_, cos_, sin_;
};

}  // namespace

namespace decoder_io {
std::string key_cache(std::int64_t layer) { return fmt::format("cache.{}.k", layer); }
std::string value_cache(std::int64_t layer) { return fmt::format("cache.{}.v", layer); }
}  // namespace decoder_io

DecoderGraph build_decoder(const ModelConfig& config, const DecoderTypes& types, const DecoderState& state) { return Builder(config, types, state).build(); }

}  // namespace cermet
