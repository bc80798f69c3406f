#include "model/decoder.hpp"

#include <cmath>

#include "base/error.hpp"

namespace cermet {
namespace {

Dim tokens() { return Dim::symbol("T"); }

/// The left operand of products: real values, or codes with a scale for each token.
struct Operand {
  ValueId x, scale;
};

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
      delta = attention(layer, normalize_operand(hidden, delta, prefix + "input_layernorm.weight"));
      const std::string norm = prefix + "post_attention_layernorm.weight";
      if (config_.sparse[static_cast<std::size_t>(layer)]) delta = mixture(layer, normalize(hidden, delta, norm));
      else delta = feed_forward(layer, normalize_operand(hidden, delta, norm));
    }
    const ValueId y = normalize(hidden, delta, "model.norm.weight");
    const ValueId rows = graph().apply(OpKind::gather, {y, logit_rows_}, {{"axis", std::int64_t{0}}}, "last_hidden");
    const std::string head = config_.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight";
    const ValueId logits = graph().apply(OpKind::linear, {rows, head_matrix(head, config_.vocab_size, config_.hidden_size)}, {{"out_dtype", "f32"}}, "lm_head");
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

  bool is_int8() const { return types_.weights == DType::i8; }

  /// A real matrix [rows, columns] of the embedding, the head or a router.
  ValueId head_matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    return constant(name, {types_.head, {rows, columns}}, {.slices = {{name}}});
  }

  /// A weight of `dims` ([rows, columns], or a stack of those) made of checkpoint tensors; for int8, its codes.
  ValueId weight(const std::string& name, const std::vector<std::vector<std::string>>& slices, Dims dims) {
    return constant(name, {types_.weights, std::move(dims)}, {slices, is_int8() ? WeightSource::Form::codes : WeightSource::Form::plain});
  }
  /// The scales of an int8 weight's rows.
  ValueId weight_scale(const std::string& name, const std::vector<std::vector<std::string>>& slices, Dims dims) {
    dims.pop_back();
    return constant(name + ".scale", {DType::f32, std::move(dims)}, {slices, WeightSource::Form::scales});
  }

  /// A vector, widened to float32: it is small, and every kernel computes in float32.
  ValueId vector(const std::string& name, std::int64_t length) { return constant(name, {DType::f32, {length}}, {.slices = {{name}}}); }

  ValueId embedding_table() { return head_matrix("model.embed_tokens.weight", config_.vocab_size, config_.hidden_size); }

  std::string operand_type() const { return std::string(name_of(is_int8() ? DType::f32 : types_.operands)); }

  /// Values as products of this model want them.
  Operand operand(ValueId x) {
    if (!is_int8()) return {x, {}};
    const std::vector<ValueId> quantized = graph().apply_all(OpKind::dynamic_quant, {x});
    return {quantized[0], quantized[1]};
  }

  /// y = x W^T (+ bias) in float32; `name` is the weight's, whose rows are those of `parts` one after the other.
  ValueId product(const Operand& x, const std::string& name, const std::vector<std::string>& parts, std::int64_t rows, std::int64_t columns, ValueId bias) {
    const Dims dims{rows, columns};
    const ValueId w = weight(name + ".weight", {parts}, dims);
    if (!is_int8()) return graph().apply(OpKind::linear, {x.x, w, bias}, {{"out_dtype", "f32"}}, name);
    return graph().apply(OpKind::scaled_mm, {x.x, w, x.scale, weight_scale(name + ".weight", {parts}, dims), bias}, {{"out_dtype", "f32"}}, name);
  }

  /// y = module(x); `module` names the checkpoint's tensors.
  ValueId project(const Operand& x, const std::string& module, std::int64_t rows, std::int64_t columns, bool bias) {
    return product(x, module, {module + ".weight"}, rows, columns, bias ? vector(module + ".bias", rows) : ValueId{});
  }

  /// Queries, keys and values in one product: their weights stacked by rows.
  ValueId project_qkv(const Operand& y, const std::string& module, std::int64_t rows) {
    const auto parts = [&](const char* kind) {
      return std::vector<std::string>{module + "q_proj." + kind, module + "k_proj." + kind, module + "v_proj." + kind};
    };
    const ValueId bias = config_.qkv_bias ? constant(module + "qkv_proj.bias", {DType::f32, {rows}}, {.slices = {parts("bias")}}) : ValueId{};
    return product(y, module + "qkv_proj", parts("weight"), rows, config_.hidden_size, bias);
  }

  /// Adds what is pending to the residual stream and normalises it.
  ValueId normalize(ValueId& hidden, ValueId delta, const std::string& name) {
    const ValueId w = vector(name, config_.hidden_size);
    const Attributes attributes{{"eps", config_.rms_norm_eps}, {"out_dtype", operand_type()}};
    if (!delta) return graph().apply(OpKind::rms_norm, {hidden, w}, attributes);
    const std::vector<ValueId> results = graph().apply_all(OpKind::add_rms_norm, {delta, hidden, w}, attributes);
    hidden = results[1];
    return results[0];
  }

  /// The same as the left operand of products: int8 codes come straight from the normalisation.
  Operand normalize_operand(ValueId& hidden, ValueId delta, const std::string& name) {
    if (!is_int8()) return {normalize(hidden, delta, name), {}};
    const ValueId w = vector(name, config_.hidden_size);
    const Attributes attributes{{"eps", config_.rms_norm_eps}};
    if (!delta) {
      const std::vector<ValueId> results = graph().apply_all(OpKind::rms_norm_quant, {hidden, w}, attributes);
      return {results[0], results[1]};
    }
    const std::vector<ValueId> results = graph().apply_all(OpKind::add_rms_norm_quant, {delta, hidden, w}, attributes);
    hidden = results[1];
    return {results[0], results[2]};
  }

  ValueId heads_of(ValueId x, std::int64_t heads) { return graph().apply(OpKind::reshape, {x}, {{"shape", Ints{0, heads, config_.head_dim}}}); }

  ValueId attention(std::int64_t layer, const Operand& y) {
    const Graph::Scope scope(graph(), "attention");
    const std::string module = fmt::format("model.layers.{}.self_attn.", layer);
    const std::int64_t q_size = config_.heads * config_.head_dim, kv_size = config_.kv_heads * config_.head_dim;
    const std::vector<ValueId> qkv = graph().apply_all(OpKind::split, {project_qkv(y, module, q_size + 2 * kv_size)},
                                                       {{"axis", std::int64_t{-1}}, {"sizes", Ints{q_size, kv_size, kv_size}}});
    const TensorType cache{types_.cache, {state_.blocks, config_.kv_heads, state_.block_size, config_.head_dim}};
    const ValueId k_cache = graph().add_input(decoder_io::key_cache(layer), cache);
    const ValueId v_cache = graph().add_input(decoder_io::value_cache(layer), cache);
    const ValueId q_norm = config_.qk_norm ? vector(module + "q_norm.weight", config_.head_dim) : ValueId{};
    const ValueId k_norm = config_.qk_norm ? vector(module + "k_norm.weight", config_.head_dim) : ValueId{};
    const std::vector<ValueId> stored =
        graph().apply_all(OpKind::rope_and_cache,
                          {heads_of(qkv[0], config_.heads), heads_of(qkv[1], config_.kv_heads), heads_of(qkv[2], config_.kv_heads), cos_, sin_, positions_,
                           k_cache, v_cache, slots_, q_norm, k_norm},
                          {{"rotary_dim", config_.rope.rotary_dim}, {"eps", config_.rms_norm_eps}});
    const ValueId o = graph().apply(OpKind::incre_flash_attention, {stored[0], stored[1], stored[2], block_tables_, context_lens_, query_starts_},
                                    {{"scale", 1.0 / std::sqrt(static_cast<double>(config_.head_dim))},
                                     {"window", config_.window[static_cast<std::size_t>(layer)]},
                                     {"out_dtype", operand_type()}});
    const ValueId flat = graph().apply(OpKind::reshape, {o}, {{"shape", Ints{0, q_size}}});
    return project(operand(flat), module + "o_proj", config_.hidden_size, q_size, config_.o_bias);
  }

  ValueId feed_forward(std::int64_t layer, const Operand& y) {
    const Graph::Scope scope(graph(), "feed_forward");
    const FeedForwardNames names = dense_names(config_, layer);
    const std::int64_t f = config_.intermediate_size, h = config_.hidden_size;
    return project(is_int8() ? gated_int8(names, y) : Operand{gated(names, y.x), {}}, names.down, h, f, config_.mlp_bias);
  }

  /// silu(gate) * up in one pass over both weights.
  ValueId gated(const FeedForwardNames& names, ValueId y) {
    const std::int64_t f = config_.intermediate_size, h = config_.hidden_size;
    const ValueId gate = weight(names.gate + ".weight", {{names.gate + ".weight"}}, {f, h}),
                  up = weight(names.up + ".weight", {{names.up + ".weight"}}, {f, h});
    const ValueId gate_bias = config_.mlp_bias ? vector(names.gate + ".bias", f) : ValueId{};
    const ValueId up_bias = config_.mlp_bias ? vector(names.up + ".bias", f) : ValueId{};
    return graph().apply(OpKind::dual_linear, {y, gate, up, gate_bias, up_bias}, {{"activation", "silu"}, {"out_dtype", operand_type()}});
  }

  /// The same of int8 codes: one product whose integer sums the activation scales, gates and quantizes again.
  Operand gated_int8(const FeedForwardNames& names, const Operand& y) {
    const std::int64_t f = config_.intermediate_size, h = config_.hidden_size;
    const std::string name = names.gate + "_up";
    const std::vector<std::vector<std::string>> parts{{names.gate + ".weight", names.up + ".weight"}};
    const ValueId w = weight(name + ".weight", parts, {2 * f, h}), w_scale = weight_scale(name + ".weight", parts, {2 * f, h});
    const ValueId bias =
        config_.mlp_bias ? constant(name + ".bias", {DType::f32, {2 * f}}, {.slices = {{names.gate + ".bias", names.up + ".bias"}}}) : ValueId{};
    const ValueId sums = graph().apply(OpKind::scaled_mm, {y.x, w}, {{"out_dtype", "i32"}}, name);
    const std::vector<ValueId> results = graph().apply_all(OpKind::dequant_swiglu_quant, {sums, w_scale, y.scale, bias});
    return {results[0], results[1]};
  }

  ValueId mixture(std::int64_t layer, ValueId y) {
    const Graph::Scope scope(graph(), "experts");
    const std::string router = router_name(config_, layer);
    const ValueId logits =
        graph().apply(OpKind::linear, {y, head_matrix(router + ".weight", config_.experts, config_.hidden_size)}, {{"out_dtype", "f32"}}, router);
    const std::vector<ValueId> chosen =
        graph().apply_all(OpKind::topk_gating, {logits}, {{"k", config_.experts_per_token}, {"renormalize", config_.renormalize_experts}});
    const std::vector<ValueId> sorted = graph().apply_all(OpKind::moe_permute, {y, chosen[1]}, {{"experts", config_.experts}});
    std::vector<std::vector<std::string>> gate_up, down;
    for (std::int64_t e = 0; e < config_.experts; ++e) {
      const FeedForwardNames names = expert_names(config_, layer, e);
      gate_up.push_back({names.gate + ".weight", names.up + ".weight"});
      down.push_back({names.down + ".weight"});
    }
    const std::int64_t f = config_.expert_intermediate_size, h = config_.hidden_size;
    const std::string name = fmt::format("model.layers.{}.experts.", layer);
    const ValueId both = grouped(operand(sorted[0]), sorted[1], name + "gate_up", gate_up, {config_.experts, 2 * f, h});
    const ValueId a = graph().apply(OpKind::silu_and_mul, {both}, {{"out_dtype", operand_type()}});
    return graph().apply(OpKind::moe_unpermute, {grouped(operand(a), sorted[1], name + "down", down, {config_.experts, h, f}), sorted[2], chosen[0]});
  }

  /// Each row times its expert's weight.
  ValueId grouped(const Operand& x, ValueId offsets, const std::string& name, const std::vector<std::vector<std::string>>& slices, const Dims& dims) {
    const ValueId w = weight(name, slices, dims);
    if (!is_int8()) return graph().apply(OpKind::grouped_linear, {x.x, w, offsets}, {{"out_dtype", "f32"}});
    return graph().apply(OpKind::grouped_linear, {x.x, w, offsets, ValueId{}, x.scale, weight_scale(name, slices, dims)}, {{"out_dtype", "f32"}});
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
