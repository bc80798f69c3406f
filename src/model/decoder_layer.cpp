// A layer: attention over the paged cache, and a dense feed-forward part or a mixture of experts.
#include <cmath>

#include "model/decoder_builder.hpp"

namespace cermet {

void DecoderBuilder::tap(const char* name, ValueId value) {
  if (taps_) graph().add_output(name, value);
}

Linear DecoderBuilder::qkv_linear(std::int64_t layer) const {
  const std::string module = fmt::format("model.layers.{}.self_attn.", layer);
  return {.name = module + "qkv_proj",
          .modules = {{module + "q_proj", module + "k_proj", module + "v_proj"}},
          .rows = (config_.heads + 2 * config_.kv_heads) * config_.head_dim,
          .columns = config_.hidden_size,
          .bias = config_.qkv_bias};
}

Linear DecoderBuilder::gate_up_linear(std::int64_t layer) const {
  if (!config_.sparse[static_cast<std::size_t>(layer)]) {
    const FeedForwardNames names = dense_names(config_, layer);
    return {names.gate + "_up",
            {{names.gate, names.up}},
            2 * config_.intermediate_size,
            config_.hidden_size,
            config_.mlp_bias};
  }
  Linear linear{fmt::format("model.layers.{}.experts.gate_up", layer),
                {},
                2 * config_.expert_intermediate_size,
                config_.hidden_size,
                false,
                true};
  for (std::int64_t e = experts_.first; e < experts_.first + experts_.count; ++e) {
    const FeedForwardNames names = expert_names(config_, layer, e);
    linear.modules.push_back({names.gate, names.up});
  }
  return linear;
}

Linear DecoderBuilder::down_linear(std::int64_t layer) const {
  if (!config_.sparse[static_cast<std::size_t>(layer)]) {
    const FeedForwardNames names = dense_names(config_, layer);
    return {names.down, {{names.down}}, config_.hidden_size, config_.intermediate_size, config_.mlp_bias};
  }
  Linear linear{fmt::format("model.layers.{}.experts.down", layer),
                {},
                config_.hidden_size,
                config_.expert_intermediate_size,
                false,
                true};
  for (std::int64_t e = experts_.first; e < experts_.first + experts_.count; ++e)
    linear.modules.push_back({expert_names(config_, layer, e).down});
  return linear;
}

Linear DecoderBuilder::router_linear(std::int64_t layer) const {
  const std::string name = router_name(config_, layer);
  return {name, {{name}}, config_.experts, config_.hidden_size, false};
}

ValueId DecoderBuilder::layer(std::int64_t layer, ValueId& hidden, ValueId delta) {
  const Graph::Scope scope(graph(), fmt::format("layers.{}", layer));
  const std::string prefix = fmt::format("model.layers.{}.", layer), norm = prefix + "post_attention_layernorm.weight";
  const Linear qkv = qkv_linear(layer), gate_up = gate_up_linear(layer);
  delta =
      attention(layer, qkv, normalize_for(qkv, hidden, delta, prefix + "input_layernorm.weight", decoder_io::tap_qkv));
  if (!config_.sparse[static_cast<std::size_t>(layer)])
    return feed_forward(layer, gate_up, normalize_for(gate_up, hidden, delta, norm, decoder_io::tap_gate_up));
  const DType router = values_for(scheme_of(router_linear(layer)));
  return mixture(layer, gate_up,
                 whole(normalize(hidden, delta, norm, router == DType::f32 ? router : values_for(scheme_of(gate_up)))));
}

ValueId DecoderBuilder::heads_of(ValueId x, std::int64_t heads) {
  return graph().apply(OpKind::reshape, {x}, {{"shape", Ints{0, heads, config_.head_dim}}});
}

ValueId DecoderBuilder::attention(std::int64_t layer, const Linear& qkv, const Operand& y) {
  const Graph::Scope scope(graph(), "attention");
  const std::string module = fmt::format("model.layers.{}.self_attn.", layer);
  const std::int64_t q_size = config_.heads * config_.head_dim, kv_size = config_.kv_heads * config_.head_dim;
  const Ints sizes{q_size, kv_size, kv_size};
  const std::vector<ValueId> parts = is_plain(qkv) ? project_apart(qkv, sizes, y.x)
                                                   : graph().apply_all(OpKind::split, {project(qkv, y)},
                                                                       {{"axis", std::int64_t{-1}}, {"sizes", sizes}});
  const TensorType cache{types_.cache, {state_.blocks, config_.kv_heads, state_.block_size, config_.head_dim}};
  const ValueId k_cache = graph().add_input(decoder_io::key_cache(layer), cache);
  const ValueId v_cache = graph().add_input(decoder_io::value_cache(layer), cache);
  ValueId k_scale, v_scale;
  if (types_.cache == DType::i8) {
    const TensorType scales{DType::f32, {state_.blocks, config_.kv_heads, state_.block_size}};
    k_scale = graph().add_input(decoder_io::key_scales(layer), scales);
    v_scale = graph().add_input(decoder_io::value_scales(layer), scales);
  }
  ValueId q = heads_of(parts[0], config_.heads), k = heads_of(parts[1], config_.kv_heads);
  const ValueId v = heads_of(parts[2], config_.kv_heads);
  if (config_.qk_norm) {
    const Attributes eps{{"eps", config_.rms_norm_eps}};
    q = graph().apply(OpKind::rms_norm, {q, vector(module + "q_norm.weight", config_.head_dim)}, eps);
    k = graph().apply(OpKind::rms_norm, {k, vector(module + "k_norm.weight", config_.head_dim)}, eps);
  }
  const std::vector<ValueId> rotated =
      graph().apply_all(OpKind::rope, {q, k, cos_, sin_, positions_}, {{"rotary_dim", config_.rope.rotary_dim}});
  const std::vector<ValueId> stored =
      graph().apply_all(OpKind::kv_cache_write, {rotated[1], v, k_cache, v_cache, slots_, k_scale, v_scale});
  const Linear out{module + "o_proj", {{module + "o_proj"}}, config_.hidden_size, q_size, config_.o_bias};
  std::vector<ValueId> cached{
      as_type(rotated[0], types_.queries), stored[0], stored[1], block_tables_, context_lens_, query_starts_};
  if (k_scale) cached.insert(cached.end(), {stored[2], stored[3]});
  const ValueId o = graph().apply(OpKind::incre_flash_attention, cached,
                                  {{"scale", 1.0 / std::sqrt(static_cast<double>(config_.head_dim))},
                                   {"window", config_.window[static_cast<std::size_t>(layer)]},
                                   {"out_dtype", std::string(name_of(values_for(scheme_of(out))))}});
  const ValueId flat = graph().apply(OpKind::reshape, {o}, {{"shape", Ints{0, q_size}}});
  tap(decoder_io::tap_o, flat);
  return sum_over(shard_.ranks, project(out, operand_for(out, flat), summand_type(shard_.ranks)));
}

ValueId DecoderBuilder::feed_forward(std::int64_t layer, const Linear& gate_up, const Operand& y) {
  const Graph::Scope scope(graph(), "feed_forward");
  const Linear down = down_linear(layer);
  return sum_over(shard_.ranks,
                  project(down, gated(gate_up, down, y, decoder_io::tap_down), summand_type(shard_.ranks)));
}

ValueId DecoderBuilder::mixture(std::int64_t layer, const Linear& gate_up, ValueId y) {
  const Graph::Scope scope(graph(), "experts");
  if (shard_.exchanges_rows()) return exchanged_mixture(layer, gate_up, y);
  const Linear router = router_linear(layer);
  const ValueId logits = project(router, operand_for(router, y));
  const std::vector<ValueId> chosen = graph().apply_all(
      OpKind::topk_gating, {logits}, {{"k", config_.experts_per_token}, {"renormalize", config_.renormalize_experts}});
  if (shard_.gathers_rows()) return gathered_mixture(layer, gate_up, y, chosen);
  const bool quantizes_first = quantizes_tokens();
  const Operand tokens = quantizes_first ? operand_for(gate_up, y) : Operand{y, {}};
  const std::vector<ValueId> sorted = sorted_by_expert(tokens, chosen[1]);
  tap(decoder_io::tap_experts, y);
  tap(decoder_io::tap_router, logits);
  tap(decoder_io::tap_expert_input, sorted[0]);
  tap(decoder_io::tap_expert_rows, sorted[1]);
  const Operand rows = quantizes_first ? sorted_operand(tokens, sorted) : operand_for(gate_up, sorted[0]);
  return sum_over(shard_.all(), expert_sums(layer, gate_up, rows, sorted, chosen[0], summand_type(shard_.all())));
}

/// Whether tokens are quantized before they are sorted by expert, with the same values: once each, and fewer bytes are
/// copied. Not where their unquantized rows are results, nor where they are so few pairs of token and expert that
/// gemv.front_grouped_linear sorts them and quantizes what it reads.
bool DecoderBuilder::quantizes_tokens() const {
  constexpr std::int64_t pairs_sorted_inside = 32;
  return !taps_ && (state_.most_tokens == 0 || state_.most_tokens * config_.experts_per_token > pairs_sorted_inside);
}

/// Results of moe_permute. Rows of other ranks' experts come last.
std::vector<ValueId> DecoderBuilder::sorted_by_expert(const Operand& rows, ValueId chosen) {
  std::vector<ValueId> operands{rows.x, chosen};
  if (has_row_scales(rows)) operands.push_back(rows.scale);
  Attributes attributes{{"experts", experts_.count}};
  if (experts_.count < config_.experts)
    attributes = {{"experts", experts_.count + 1}, {"first", experts_.first}, {"rest", true}};
  return graph().apply_all(OpKind::moe_permute, operands, attributes);
}

/// The rows of sorted_by_expert() with their scales, or the scale that all rows have.
Operand DecoderBuilder::sorted_operand(const Operand& rows, std::span<const ValueId> sorted) {
  return {sorted[0], has_row_scales(rows) ? sorted[3] : rows.scale};
}

/// The rank's summand of each token's result, from its rows as `sorted`. Nothing is computed for those of other ranks'
/// experts.
ValueId DecoderBuilder::expert_sums(std::int64_t layer, const Linear& gate_up, const Operand& rows,
                                    std::span<const ValueId> sorted, ValueId weights, DType out) {
  const Linear down = down_linear(layer);
  const Operand a = activated(down, grouped(gate_up, rows, sorted[1]), decoder_io::tap_expert_down);
  return graph().apply(OpKind::moe_unpermute, {grouped(down, a, sorted[1]), sorted[2], weights},
                       {{"out_dtype", std::string(name_of(out))}});
}

}  // namespace cermet
