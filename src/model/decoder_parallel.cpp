// What a rank's graph has beside the layers' products where several ranks share them.
#include "model/decoder_builder.hpp"

namespace cermet {
namespace {

TensorData scalar(std::int32_t value) { return TensorData::of<std::int32_t>({DType::i32, {}}, {value}); }

}  // namespace

/// Rows of the embedding. Of several ranks each has some of the table: an id of another rank's gives zeros, so that the sum is the row.
ValueId DecoderBuilder::embed(ValueId ids, ValueId table) {
  const Attributes as_f32{{"out_dtype", "f32"}};
  if (shard_.ranks == 1) return graph().apply(OpKind::embedding, {ids, table}, as_f32, "embedding");
  const Graph::Scope scope(graph(), "embedding");
  const auto first = static_cast<std::int32_t>(shard_.rank * vocabulary_rows()), last = static_cast<std::int32_t>(vocabulary_rows() - 1);
  const ValueId zero = graph().add_constant("embedding.zero", scalar(0));
  const ValueId row = graph().apply(OpKind::sub, {ids, graph().add_constant("embedding.first", scalar(first))});
  const ValueId held = graph().apply(OpKind::min, {graph().apply(OpKind::max, {row, zero}), graph().add_constant("embedding.last", scalar(last))});
  const ValueId is_held = graph().apply(OpKind::reshape, {graph().apply(OpKind::equal, {row, held})}, {{"shape", Ints{0, 1}}});
  const ValueId rows = graph().apply(OpKind::embedding, {held, table}, as_f32);
  const ValueId zeros = graph().add_constant("embedding.nothing", TensorData::of<float>({DType::f32, {}}, {0.0f}));
  return sum_over(shard_.ranks, graph().apply(OpKind::where, {is_held, rows, zeros}));
}

/// Rank 0 alone knows the tokens: they may have been chosen on its device.
ValueId DecoderBuilder::from_first_rank(ValueId ids) {
  if (shard_.all() == 1) return ids;
  return graph().apply(OpKind::broadcast_from, {ids}, {{"ranks", shard_.all()}, {"group", std::string(model_group)}});
}

/// Ranks that split the inner dimension of a product, or the experts of a mixture, each have a summand of every result.
ValueId DecoderBuilder::sum_over(std::int64_t ranks, ValueId part) {
  if (ranks == 1) return part;
  return graph().apply(OpKind::all_reduce, {part}, {{"ranks", ranks}, {"group", std::string(model_group)}});
}

/// Chosen experts as numbers among the rank's own; those of other ranks become the one after the last.
ValueId DecoderBuilder::own_experts(ValueId chosen) {
  const Graph::Scope scope(graph(), "own");
  const auto first = static_cast<std::int32_t>(experts_.first), count = static_cast<std::int32_t>(experts_.count);
  const auto constant_of = [&](const char* name, std::int32_t value) {
    const ValueId known = graph().find(name);
    return known ? known : graph().add_constant(name, scalar(value));
  };
  const ValueId number = graph().apply(OpKind::sub, {chosen, constant_of("experts.first", first)});
  const ValueId held =
      graph().apply(OpKind::min, {graph().apply(OpKind::max, {number, constant_of("experts.zero", 0)}), constant_of("experts.last", count - 1)});
  return graph().apply(OpKind::where, {graph().apply(OpKind::equal, {number, held}), number, constant_of("experts.others", count)});
}

/// A mixture of which this rank has some experts and tokens of its own.
ValueId DecoderBuilder::exchanged_mixture(std::int64_t layer, const Linear& gate_up, ValueId y) {
  const Linear down = down_linear(layer);
  Attributes attributes{{"k", config_.experts_per_token}, {"renormalize", config_.renormalize_experts}, {"out_dtype", "f32"},
                        {"ranks", shard_.expert_ranks},   {"group", std::string(experts_group)},        {"overlap", shard_.overlap}};
  std::vector<ValueId> scales, input_scales;
  if (is_plain(down)) attributes.set("hidden_dtype", std::string(name_of(values_for(scheme_of(down)))));
  for (const Linear* linear : {&gate_up, &down}) {
    refuse_folded_experts(*linear);
    const LinearScheme scheme = scheme_of(*linear);
    const bool quantized = !is_plain(*linear);
    scales.push_back(quantized ? weight_scale(*linear) : ValueId{});
    input_scales.push_back(scheme.input == LinearScheme::Input::fixed ? fixed_input(*linear).scale : ValueId{});
    if (quantized && code_attributes(scheme).find("range")) attributes.set("range", std::string("127.5"));
  }
  return graph()
      .apply_all(OpKind::ep_moe,
                 {y, weight(router_linear(layer)), weight(gate_up), weight(down), {}, {}, scales[0], scales[1], input_scales[0], input_scales[1]}, attributes)
      .front();
}

/// Logits of the whole vocabulary, on every rank, from each rank's columns.
ValueId DecoderBuilder::join_vocabulary(ValueId logits) {
  if (shard_.ranks == 1) return logits;
  const Graph::Scope scope(graph(), "logits");
  const std::int64_t part = vocabulary_rows();
  const ValueId stacked = graph().apply(OpKind::all_gather, {logits}, {{"ranks", shard_.ranks}, {"group", std::string(model_group)}});
  const ValueId apart = graph().apply(OpKind::reshape, {stacked}, {{"shape", Ints{shard_.ranks, -1, part}}});
  const ValueId by_row = graph().apply(OpKind::transpose, {apart}, {{"permutation", Ints{1, 0, 2}}});
  const ValueId joined = graph().apply(OpKind::reshape, {by_row}, {{"shape", Ints{0, shard_.ranks * part}}});
  if (shard_.ranks * part == config_.vocab_size) return joined;
  return graph().apply(OpKind::slice, {joined}, {{"starts", Ints{0}}, {"ends", Ints{config_.vocab_size}}, {"axes", Ints{1}}});
}

}  // namespace cermet
