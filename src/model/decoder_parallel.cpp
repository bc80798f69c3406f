// What a rank's graph has beside the layers' products where several ranks share them.
#include "model/decoder_builder.hpp"

#include <algorithm>

namespace cermet {
namespace {

TensorData scalar(std::int32_t value, DType type = DType::i32) {
  if (type == DType::f32) return TensorData::of<float>({type, {}}, {static_cast<float>(value)});
  return TensorData::of<std::int32_t>({DType::i32, {}}, {value});
}

}  // namespace

/// Rows of the embedding. Of several ranks each has some of the table: an id of another rank's gives zeros, so that the
/// sum is the row.
ValueId RankBuilder::embed(ValueId ids, ValueId table) {
  const Attributes as_f32{{"out_dtype", "f32"}};
  if (shard.ranks == 1) return graph_.apply(OpKind::embedding, {ids, table}, as_f32, "embedding");
  const Graph::Scope scope(graph_, "embedding");
  const auto first = static_cast<std::int32_t>(shard.rank * own_vocabulary_),
             last = static_cast<std::int32_t>(own_vocabulary_ - 1);
  const ValueId zero = graph_.add_constant("embedding.zero", scalar(0));
  const ValueId row = graph_.apply(OpKind::sub, {ids, graph_.add_constant("embedding.first", scalar(first))});
  const ValueId held = graph_.apply(
      OpKind::min, {graph_.apply(OpKind::max, {row, zero}), graph_.add_constant("embedding.last", scalar(last))});
  const ValueId is_held =
      graph_.apply(OpKind::reshape, {graph_.apply(OpKind::equal, {row, held})}, {{"shape", Ints{0, 1}}});
  const ValueId rows = graph_.apply(OpKind::embedding, {held, table}, as_f32);
  const ValueId zeros = graph_.add_constant("embedding.nothing", TensorData::of<float>({DType::f32, {}}, {0.0f}));
  return summed(shard.ranks, graph_.apply(OpKind::where, {is_held, rows, zeros}));
}

/// Rank 0 alone knows the tokens: they may have been chosen on its device.
ValueId RankBuilder::from_first_rank(ValueId ids) {
  if (shard.all() == 1) return ids;
  return graph_.apply(OpKind::broadcast_from, {ids}, {{"ranks", shard.all()}, {"group", std::string(model_group)}});
}

/// Ranks that split the inner dimension of a product, or the experts of a mixture, each have a summand of every result,
/// of summand_type().
ValueId RankBuilder::sum_over(std::int64_t ranks, ValueId part) {
  if (ranks == 1) return part;
  return as_type(graph_, summed(ranks, part), DType::f32);
}

/// Where ranks share rows, each has the sums of its own.
ValueId RankBuilder::summed(std::int64_t ranks, ValueId part) {
  return graph_.apply(shares_rows_ ? OpKind::reduce_scatter : OpKind::all_reduce, {part},
                      {{"ranks", ranks}, {"group", std::string(model_group)}});
}

/// All rows, of a rank's share.
ValueId RankBuilder::whole(ValueId rows) { return shares_rows_ ? gathered(rows, shard.ranks, model_group) : rows; }

/// Numbers that are no larger than those of experts, and of rows that pad a pass larger.
ValueId RankBuilder::least_experts(ValueId slots, std::int64_t experts) {
  const Graph::Scope scope(graph_, "padding");
  const auto constant_of = [&](const char* name, std::int64_t value, DType type) {
    return graph_.add_constant(name, scalar(static_cast<std::int32_t>(value), type));
  };
  const ValueId has_slot =
      graph_.apply(OpKind::greater_equal, {slots, constant_of("padding.first_slot", 0, DType::i32)});
  const ValueId least = graph_.apply(OpKind::where, {has_slot, constant_of("padding.no", 0, DType::f32),
                                                     constant_of("padding.yes", experts, DType::f32)});
  return graph_.apply(OpKind::reshape, {least}, {{"shape", Ints{0, 1}}});
}

/// Rows of all ranks of a group. Collectives carry fp8 as bytes.
ValueId RankBuilder::gathered(ValueId rows, std::int64_t ranks, const char* group) {
  const DType type = graph_.type(rows).dtype;
  const auto as_bits = [&](ValueId x, DType to) {
    return graph_.apply(OpKind::bitcast, {x}, {{"out_dtype", std::string(name_of(to))}});
  };
  const bool fp8 = dtypes::fp8.contains(type);
  const ValueId all = graph_.apply(OpKind::all_gather, {fp8 ? as_bits(rows, DType::i8) : rows},
                                   {{"ranks", ranks}, {"group", std::string(group)}});
  return fp8 ? as_bits(all, type) : all;
}

/// Logits of the whole vocabulary, on every rank, from each rank's columns.
ValueId RankBuilder::join_vocabulary(ValueId logits) {
  if (shard.ranks == 1) return logits;
  const Graph::Scope scope(graph_, "logits");
  const std::int64_t part = own_vocabulary_;
  const ValueId stacked =
      graph_.apply(OpKind::all_gather, {logits}, {{"ranks", shard.ranks}, {"group", std::string(model_group)}});
  ValueId joined = stacked;
  if (most_tokens_ != 1) {  // parts of one row are side by side
    const ValueId apart = graph_.apply(OpKind::reshape, {stacked}, {{"shape", Ints{shard.ranks, -1, part}}});
    joined = graph_.apply(OpKind::transpose, {apart}, {{"permutation", Ints{1, 0, 2}}});
  }
  joined = graph_.apply(OpKind::reshape, {joined}, {{"shape", Ints{-1, shard.ranks * part}}});
  if (shard.ranks * part == vocab_size_) return joined;
  return graph_.apply(OpKind::slice, {joined}, {{"starts", Ints{0}}, {"ends", Ints{vocab_size_}}, {"axes", Ints{1}}});
}

/// The id of each row's largest logit, on every rank: of each rank's largest, the largest; of equal ones the first,
/// which is that of the lowest id. NaN counts as the largest within a rank, as for argmax, and between ranks on the
/// first alone. Ids are exact in float32, so that one message has both.
ValueId RankBuilder::largest_of(ValueId logits) {
  const Graph::Scope scope(graph_, "largest");
  const std::int64_t first = shard.rank * own_vocabulary_, columns = std::min(own_vocabulary_, vocab_size_ - first);
  CERMET_ASSERT(columns > 0);
  if (columns < own_vocabulary_)
    logits = graph_.apply(OpKind::slice, {logits}, {{"starts", Ints{0}}, {"ends", Ints{columns}}, {"axes", Ints{1}}});
  const auto as_column = [&](ValueId x) { return graph_.apply(OpKind::reshape, {x}, {{"shape", Ints{-1, 1}}}); };
  const ValueId place = as_column(graph_.apply(OpKind::argmax, {logits}));
  const ValueId value = graph_.apply(OpKind::gather_elements, {logits, place}, {{"axis", std::int64_t{1}}});
  const ValueId id = graph_.apply(
      OpKind::add, {as_type(graph_, place, DType::f32),
                    graph_.add_constant("largest.first", scalar(static_cast<std::int32_t>(first), DType::f32))});
  const ValueId is_value =
      graph_.add_constant("largest.is_value", TensorData::of<std::uint8_t>({DType::boolean, {1, 2}}, {1, 0}));
  const ValueId all = gathered(graph_.apply(OpKind::where, {is_value, value, id}), shard.ranks, model_group);
  const auto parts_of = [&](ValueId x, std::int64_t axis, std::int64_t count) {
    return graph_.apply_all(OpKind::split, {x}, {{"axis", axis}, {"sizes", Ints(static_cast<std::size_t>(count), 1)}});
  };
  ValueId most, chosen;
  for (const ValueId rank :
       parts_of(graph_.apply(OpKind::reshape, {all}, {{"shape", Ints{shard.ranks, -1, 2}}}), 0, shard.ranks)) {
    const std::vector<ValueId> other = parts_of(rank, 2, 2);
    const ValueId is_more = most ? graph_.apply(OpKind::greater, {other[0], most}) : ValueId{};
    chosen = most ? graph_.apply(OpKind::where, {is_more, other[1], chosen}) : other[1];
    most = most ? graph_.apply(OpKind::where, {is_more, other[0], most}) : other[0];
  }
  chosen = graph_.apply(OpKind::reshape, {chosen}, {{"shape", Ints{-1}}});
  return as_type(graph_, chosen, DType::i32);
}

}  // namespace cermet
