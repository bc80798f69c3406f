// A layer: attention over the paged cache, and a dense feed-forward part.
#include "model/decoder_builder.hpp"

namespace cermet {

ValueId LayerBuilder::add(const Layer& layer, std::int64_t index, ValueId& hidden, ValueId delta) {
  const Graph::Scope scope(graph(), fmt::format("layers.{}", index));
  index_ = index;
  for (const Block& block : layer) {
    if (delta) hidden = graph().apply(OpKind::add, {delta, hidden});
    delta = std::visit([&](const auto& kind) { return body(kind, block.norm, hidden); }, block.body);
    if (block.post_norm) delta = linears_.normalize(*block.post_norm, delta);
  }
  return delta;
}

/// The normalized residual stream as the left operand of a linear.
Operand LayerBuilder::normalized(const Norm& norm, const LinearStack& next, ValueId hidden, const char* tap_name) {
  const ValueId y = linears_.normalize(norm, hidden, linears_.input_type(next));
  linears_.tap(tap_name, y);
  const Operand operand = linears_.operand_for(next, y);  // quantized before it is gathered
  return {ranks_.whole(operand.x), linears_.has_row_scales(operand) ? ranks_.whole(operand.scale) : operand.scale};
}

ValueId LayerBuilder::body(const Attention& attention, const Norm& norm, ValueId hidden) {
  const Linear parts[] = {attention.q, attention.k, attention.v};
  const LinearStack qkv(parent_of(attention.q.name) + "qkv_proj", parts), out = attention.o;
  const Operand y = normalized(norm, qkv, hidden, decoder_io::tap_qkv);
  const Graph::Scope scope(graph(), "attention");
  const std::vector<ValueId> qkv_rows = projected(attention, qkv, y);
  const ValueId o = attended(attention, qkv_rows[0], qkv_rows[1], qkv_rows[2], linears_.input_type(out));
  const ValueId flat = graph().apply(OpKind::reshape, {o}, {{"shape", Ints{0, out.columns}}});
  linears_.tap(decoder_io::tap_o, flat);
  return ranks_.sum_over(shard_.ranks,
                         linears_.project(out, linears_.operand_for(out, flat), summand_type(shard_.ranks)));
}

std::vector<ValueId> LayerBuilder::projected(const Attention& attention, const LinearStack& qkv, const Operand& y) {
  if (linears_.is_plain(qkv))
    return {linears_.project(attention.q, y), linears_.project(attention.k, y), linears_.project(attention.v, y)};
  return graph().apply_all(
      OpKind::split, {linears_.project(qkv, y)},
      {{"axis", std::int64_t{-1}}, {"sizes", Ints{attention.q.rows, attention.k.rows, attention.v.rows}}});
}

ValueId LayerBuilder::attended(const Attention& attention, ValueId q, ValueId k, ValueId v, DType out) {
  const DecoderTypes& types = linears_.types;
  const std::int64_t heads = attention.kv_heads, head_dim = attention.head_dim;
  const TensorType cache{types.cache, {state_.blocks, heads, state_.block_size, head_dim}};
  const ValueId k_cache = graph().add_input(decoder_io::key_cache(index_), cache);
  const ValueId v_cache = graph().add_input(decoder_io::value_cache(index_), cache);
  ValueId k_scale, v_scale;
  if (types.cache == DType::i8) {
    const TensorType scales{DType::f32, {state_.blocks, heads, state_.block_size}};
    k_scale = graph().add_input(decoder_io::key_scales(index_), scales);
    v_scale = graph().add_input(decoder_io::value_scales(index_), scales);
  }
  for (const auto& [x, count] : {std::pair(&q, attention.heads), {&k, heads}, {&v, heads}})
    *x = graph().apply(OpKind::reshape, {*x}, {{"shape", Ints{0, count, head_dim}}});
  if (attention.q_norm) q = linears_.normalize(*attention.q_norm, q);
  if (attention.k_norm) k = linears_.normalize(*attention.k_norm, k);
  const std::vector<ValueId> rotated = graph().apply_all(
      OpKind::rope, {q, k, inputs_.cos, inputs_.sin, inputs_.positions}, {{"rotary_dim", attention.rotary_dim}});
  const std::vector<ValueId> stored =
      graph().apply_all(OpKind::kv_cache_write, {rotated[1], v, k_cache, v_cache, inputs_.slots, k_scale, v_scale});
  std::vector<ValueId> operands{as_type(graph(), rotated[0], types.queries),
                                stored[0],
                                stored[1],
                                inputs_.block_tables,
                                inputs_.context_lens,
                                inputs_.query_starts};
  if (k_scale) operands.insert(operands.end(), {stored[2], stored[3]});
  Attributes attributes{
      {"scale", attention.scale}, {"window", attention.window}, {"out_dtype", std::string(name_of(out))}};
  if (attention.softcap > 0) attributes.set("softcap", attention.softcap);
  return graph().apply(OpKind::incre_flash_attention, operands, attributes);
}

ValueId LayerBuilder::body(const FeedForward& part, const Norm& norm, ValueId hidden) {
  const Linear parts[] = {part.gate, part.up};
  const LinearStack gate_up(part.gate.name + "_up", parts), down = part.down;
  const Operand y = normalized(norm, gate_up, hidden, decoder_io::tap_gate_up);
  const Graph::Scope scope(graph(), "feed_forward");
  Operand x;
  if (linears_.is_plain(gate_up)) {
    const ValueId gate = linears_.project(part.gate, y), up = linears_.project(part.up, y);
    const OpKind activation = part.activation == Activation::silu ? OpKind::silu : OpKind::gelu_tanh;
    const ValueId a = as_type(graph(), graph().apply(OpKind::mul, {graph().apply(activation, {gate}), up}),
                              linears_.input_type(down));
    linears_.tap(decoder_io::tap_down, a);
    x = linears_.operand_for(down, a);
  } else {
    x = activated(down, part.activation, linears_.project(gate_up, y), decoder_io::tap_down);
  }
  return ranks_.sum_over(shard_.ranks, linears_.project(down, x, summand_type(shard_.ranks)));
}

/// activation(gate) * up, of rows that hold both side by side, as the operand of `down`.
Operand LayerBuilder::activated(const LinearStack& down, Activation activation, ValueId both, const char* tap_name) {
  Attributes attributes{{"out_dtype", std::string(name_of(linears_.input_type(down)))}};
  if (activation == Activation::gelu_tanh) attributes.set("approximate", std::string("tanh"));
  const OpKind op = activation == Activation::silu ? OpKind::silu_and_mul : OpKind::gelu_and_mul;
  const ValueId a = graph().apply(op, {both}, attributes);
  linears_.tap(tap_name, a);
  return linears_.operand_for(down, a);
}

}  // namespace cermet
