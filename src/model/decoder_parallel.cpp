// What a rank's graph has beside the layers' products where several ranks share them.
#include <algorithm>

#include "model/decoder_builder.hpp"

namespace cermet {
namespace {

TensorData scalar(std::int32_t value, DType type = DType::i32) {
  if (type == DType::f32) return TensorData::of<float>({type, {}}, {static_cast<float>(value)});
  return TensorData::of<std::int32_t>({DType::i32, {}}, {value});
}

}  // namespace

/// Rows of the embedding. Of several ranks each has some of the table: an id of another rank's gives zeros, so that the
/// sum is the row.
ValueId DecoderBuilder::embed(ValueId ids, ValueId table) {
  const Attributes as_f32{{"out_dtype", "f32"}};
  if (shard_.ranks == 1) return graph().apply(OpKind::embedding, {ids, table}, as_f32, "embedding");
  const Graph::Scope scope(graph(), "embedding");
  const auto first = static_cast<std::int32_t>(shard_.rank * vocabulary_rows()),
             last = static_cast<std::int32_t>(vocabulary_rows() - 1);
  const ValueId zero = graph().add_constant("embedding.zero", scalar(0));
  const ValueId row = graph().apply(OpKind::sub, {ids, graph().add_constant("embedding.first", scalar(first))});
  const ValueId held = graph().apply(
      OpKind::min, {graph().apply(OpKind::max, {row, zero}), graph().add_constant("embedding.last", scalar(last))});
  const ValueId is_held =
      graph().apply(OpKind::reshape, {graph().apply(OpKind::equal, {row, held})}, {{"shape", Ints{0, 1}}});
  const ValueId rows = graph().apply(OpKind::embedding, {held, table}, as_f32);
  const ValueId zeros = graph().add_constant("embedding.nothing", TensorData::of<float>({DType::f32, {}}, {0.0f}));
  return summed(shard_.ranks, graph().apply(OpKind::where, {is_held, rows, zeros}));
}

/// Rank 0 alone knows the tokens: they may have been chosen on its device.
ValueId DecoderBuilder::from_first_rank(ValueId ids) {
  if (shard_.all() == 1) return ids;
  return graph().apply(OpKind::broadcast_from, {ids}, {{"ranks", shard_.all()}, {"group", std::string(model_group)}});
}

/// Ranks that split the inner dimension of a product, or the experts of a mixture, each have a summand of every result,
/// of summand_type().
ValueId DecoderBuilder::sum_over(std::int64_t ranks, ValueId part) {
  if (ranks == 1) return part;
  return as_type(summed(ranks, part), DType::f32);
}

/// Where ranks share rows, each has the sums of its own.
ValueId DecoderBuilder::summed(std::int64_t ranks, ValueId part) {
  return graph().apply(shares_rows() ? OpKind::reduce_scatter : OpKind::all_reduce, {part},
                       {{"ranks", ranks}, {"group", std::string(model_group)}});
}

/// All rows, of a rank's share.
ValueId DecoderBuilder::whole(ValueId rows) { return shares_rows() ? gathered(rows, shard_.ranks, model_group) : rows; }

/// A mixture of which this rank has some experts and tokens of its own, whose rows it exchanges.
ValueId DecoderBuilder::exchanged_mixture(std::int64_t layer, const Linear& gate_up, ValueId y) {
  const Linear down = down_linear(layer);
  Attributes attributes{
      {"k", config_.experts_per_token}, {"renormalize", config_.renormalize_experts}, {"out_dtype", "f32"},
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
                 {y,
                  weight(router_linear(layer)),
                  weight(gate_up),
                  weight(down),
                  {},
                  {},
                  scales[0],
                  scales[1],
                  input_scales[0],
                  input_scales[1]},
                 attributes)
      .front();
}

/// The same of rows that every rank gets. Each computes those of its experts, and the sum over ranks of a rank's rows
/// goes to that one. Operands have the same shapes on all ranks, whose passes are padded to one size.
ValueId DecoderBuilder::gathered_mixture(std::int64_t layer, const Linear& gate_up, ValueId y,
                                         std::span<const ValueId> chosen) {
  refuse_folded_experts(gate_up);
  const Operand own = operand_for(gate_up, y);  // quantized before they are sent, which is a quarter of float32
  // One message in place of three: numbers of experts are exact in float32. Those of padding are of no expert.
  std::vector<ValueId> told{chosen[0], graph().apply(OpKind::max, {as_type(chosen[1], DType::f32), least_expert_})};
  Ints sizes{config_.experts_per_token, config_.experts_per_token};
  const bool has_scales = has_row_scales(own);
  if (has_scales) {
    told.push_back(graph().apply(OpKind::reshape, {own.scale}, {{"shape", Ints{0, 1}}}));
    sizes.push_back(1);
  }
  const ValueId message =
      gathered(graph().apply(OpKind::concat, told, {{"axis", std::int64_t{1}}}), shard_.expert_ranks, experts_group);
  const std::vector<ValueId> heard =
      graph().apply_all(OpKind::split, {message}, {{"axis", std::int64_t{-1}}, {"sizes", sizes}});
  Operand tokens{gathered(own.x, shard_.expert_ranks, experts_group), own.scale};
  if (has_scales) tokens.scale = graph().apply(OpKind::reshape, {heard[2]}, {{"shape", Ints{-1}}});
  const std::vector<ValueId> sorted = sorted_by_expert(tokens, as_type(heard[1], DType::i32));
  return graph().apply(OpKind::reduce_scatter,
                       {expert_sums(layer, gate_up, sorted_operand(tokens, sorted), sorted, heard[0], DType::f32)},
                       {{"ranks", shard_.expert_ranks}, {"group", std::string(experts_group)}});
}

/// Numbers that are no larger than those of experts, and of rows that pad a pass larger.
ValueId DecoderBuilder::least_experts() {
  const Graph::Scope scope(graph(), "padding");
  const auto constant_of = [&](const char* name, std::int64_t value, DType type) {
    return graph().add_constant(name, scalar(static_cast<std::int32_t>(value), type));
  };
  const ValueId has_slot =
      graph().apply(OpKind::greater_equal, {slots_, constant_of("padding.first_slot", 0, DType::i32)});
  const ValueId least = graph().apply(OpKind::where, {has_slot, constant_of("padding.no", 0, DType::f32),
                                                      constant_of("padding.yes", config_.experts, DType::f32)});
  return graph().apply(OpKind::reshape, {least}, {{"shape", Ints{0, 1}}});
}

/// Rows of all ranks of a group. Collectives carry fp8 as bytes.
ValueId DecoderBuilder::gathered(ValueId rows, std::int64_t ranks, const char* group) {
  const DType type = graph().type(rows).dtype;
  const auto as_bits = [&](ValueId x, DType to) {
    return graph().apply(OpKind::bitcast, {x}, {{"out_dtype", std::string(name_of(to))}});
  };
  const bool fp8 = dtypes::fp8.contains(type);
  const ValueId all = graph().apply(OpKind::all_gather, {fp8 ? as_bits(rows, DType::i8) : rows},
                                    {{"ranks", ranks}, {"group", std::string(group)}});
  return fp8 ? as_bits(all, type) : all;
}

/// Logits of the whole vocabulary, on every rank, from each rank's columns.
ValueId DecoderBuilder::join_vocabulary(ValueId logits) {
  if (shard_.ranks == 1) return logits;
  const Graph::Scope scope(graph(), "logits");
  const std::int64_t part = vocabulary_rows();
  const ValueId stacked =
      graph().apply(OpKind::all_gather, {logits}, {{"ranks", shard_.ranks}, {"group", std::string(model_group)}});
  ValueId joined = stacked;
  if (state_.most_tokens != 1) {  // parts of one row are side by side
    const ValueId apart = graph().apply(OpKind::reshape, {stacked}, {{"shape", Ints{shard_.ranks, -1, part}}});
    joined = graph().apply(OpKind::transpose, {apart}, {{"permutation", Ints{1, 0, 2}}});
  }
  joined = graph().apply(OpKind::reshape, {joined}, {{"shape", Ints{-1, shard_.ranks * part}}});
  if (shard_.ranks * part == config_.vocab_size) return joined;
  return graph().apply(OpKind::slice, {joined},
                       {{"starts", Ints{0}}, {"ends", Ints{config_.vocab_size}}, {"axes", Ints{1}}});
}

/// The id of each row's largest logit, on every rank: of each rank's largest, the largest; of equal ones the first,
/// which is that of the lowest id. NaN counts as the largest within a rank, as for argmax, and between ranks on the
/// first alone. Ids are exact in float32, so that one message has both.
ValueId DecoderBuilder::largest_of(ValueId logits) {
  const Graph::Scope scope(graph(), "largest");
  const std::int64_t first = shard_.rank * vocabulary_rows(),
                     columns = std::min(vocabulary_rows(), config_.vocab_size - first);
  CERMET_ASSERT(columns > 0);
  if (columns < vocabulary_rows())
    logits = graph().apply(OpKind::slice, {logits}, {{"starts", Ints{0}}, {"ends", Ints{columns}}, {"axes", Ints{1}}});
  const auto as_column = [&](ValueId x) { return graph().apply(OpKind::reshape, {x}, {{"shape", Ints{-1, 1}}}); };
  const ValueId place = as_column(graph().apply(OpKind::argmax, {logits}));
  const ValueId value = graph().apply(OpKind::gather_elements, {logits, place}, {{"axis", std::int64_t{1}}});
  const ValueId id = graph().apply(
      OpKind::add, {as_type(place, DType::f32),
                    graph().add_constant("largest.first", scalar(static_cast<std::int32_t>(first), DType::f32))});
  const ValueId is_value =
      graph().add_constant("largest.is_value", TensorData::of<std::uint8_t>({DType::boolean, {1, 2}}, {1, 0}));
  const ValueId all = gathered(graph().apply(OpKind::where, {is_value, value, id}), shard_.ranks, model_group);
  const auto parts_of = [&](ValueId x, std::int64_t axis, std::int64_t count) {
    return graph().apply_all(OpKind::split, {x}, {{"axis", axis}, {"sizes", Ints(static_cast<std::size_t>(count), 1)}});
  };
  ValueId most, chosen;
  for (const ValueId rank :
       parts_of(graph().apply(OpKind::reshape, {all}, {{"shape", Ints{shard_.ranks, -1, 2}}}), 0, shard_.ranks)) {
    const std::vector<ValueId> other = parts_of(rank, 2, 2);
    const ValueId is_more = most ? graph().apply(OpKind::greater, {other[0], most}) : ValueId{};
    chosen = most ? graph().apply(OpKind::where, {is_more, other[1], chosen}) : other[1];
    most = most ? graph().apply(OpKind::where, {is_more, other[0], most}) : other[0];
  }
  chosen = graph().apply(OpKind::reshape, {chosen}, {{"shape", Ints{-1}}});
  return as_type(chosen, DType::i32);
}

}  // namespace cermet
