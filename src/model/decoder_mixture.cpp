// A mixture of experts in a layer: whole, or of ranks that have different experts.
#include "model/decoder_builder.hpp"

namespace cermet {

LayerBuilder::Experts LayerBuilder::experts_of(const Mixture& mixture) const {
  const Linear parts[] = {mixture.each.gate, mixture.each.up};
  Experts experts{{fmt::format("model.layers.{}.experts.gate_up", index_), parts},
                  {fmt::format("model.layers.{}.experts.down", index_), std::span(&mixture.each.down, 1)}};
  for (LinearStack* stack : {&experts.gate_up, &experts.down}) {
    stack->modules.clear();
    stack->of_experts = true;
  }
  for (std::int64_t e = mixture.first; e < mixture.first + mixture.count; ++e) {
    const FeedForward expert = mixture.expert(e);
    experts.gate_up.modules.push_back({expert.gate.name, expert.up.name});
    experts.down.modules.push_back({expert.down.name});
  }
  return experts;
}

ValueId LayerBuilder::body(const Mixture& mixture, const Norm& norm, ValueId hidden) {
  const Experts experts = experts_of(mixture);
  const LinearStack router = mixture.router;
  const DType router_type = linears_.input_type(router);
  const ValueId y = ranks_.whole(
      linears_.normalize(norm, hidden, router_type == DType::f32 ? router_type : linears_.input_type(experts.gate_up)));
  const Graph::Scope scope(graph(), "experts");
  if (shard_.exchanges_rows()) return exchanged_mixture(mixture, experts, y);
  const ValueId logits = linears_.project(router, linears_.operand_for(router, y));
  const std::vector<ValueId> chosen = graph().apply_all(
      OpKind::topk_gating, {logits}, {{"k", mixture.experts_per_token}, {"renormalize", mixture.renormalize}});
  if (shard_.gathers_rows()) return gathered_mixture(mixture, experts, y, chosen);
  const bool quantizes_first = quantizes_tokens(mixture);
  const Operand tokens = quantizes_first ? linears_.operand_for(experts.gate_up, y) : Operand{y, {}};
  const std::vector<ValueId> sorted = sorted_by_expert(mixture, tokens, chosen[1]);
  linears_.tap(decoder_io::tap_experts, y);
  linears_.tap(decoder_io::tap_router, logits);
  linears_.tap(decoder_io::tap_expert_input, sorted[0]);
  linears_.tap(decoder_io::tap_expert_rows, sorted[1]);
  const Operand rows =
      quantizes_first ? sorted_operand(tokens, sorted) : linears_.operand_for(experts.gate_up, sorted[0]);
  return ranks_.sum_over(shard_.all(),
                         expert_sums(mixture, experts, rows, sorted, chosen[0], summand_type(shard_.all())));
}

/// Whether tokens are quantized before they are sorted by expert, with the same values: once each, and fewer bytes are
/// copied. Not where their unquantized rows are results, nor where they are so few pairs of token and expert that
/// gemv.front_grouped_linear sorts them and quantizes what it reads.
bool LayerBuilder::quantizes_tokens(const Mixture& mixture) const {
  constexpr std::int64_t pairs_sorted_inside = 32;
  return !linears_.taps &&
         (state_.most_tokens == 0 || state_.most_tokens * mixture.experts_per_token > pairs_sorted_inside);
}

/// Results of moe_permute. Rows of other ranks' experts come last.
std::vector<ValueId> LayerBuilder::sorted_by_expert(const Mixture& mixture, const Operand& rows, ValueId chosen) {
  std::vector<ValueId> operands{rows.x, chosen};
  if (linears_.has_row_scales(rows)) operands.push_back(rows.scale);
  Attributes attributes{{"experts", mixture.count}};
  if (mixture.count < mixture.experts())
    attributes = {{"experts", mixture.count + 1}, {"first", mixture.first}, {"rest", true}};
  return graph().apply_all(OpKind::moe_permute, operands, attributes);
}

/// The rows of sorted_by_expert() with their scales, or the scale that all rows have.
Operand LayerBuilder::sorted_operand(const Operand& rows, std::span<const ValueId> sorted) {
  return {sorted[0], linears_.has_row_scales(rows) ? sorted[3] : rows.scale};
}

/// The rank's summand of each token's result, from its rows as `sorted`. Nothing is computed for those of other ranks'
/// experts.
ValueId LayerBuilder::expert_sums(const Mixture& mixture, const Experts& experts, const Operand& rows,
                                  std::span<const ValueId> sorted, ValueId weights, DType out) {
  const Operand a = activated(experts.down, mixture.each.activation, linears_.grouped(experts.gate_up, rows, sorted[1]),
                              decoder_io::tap_expert_down);
  return graph().apply(OpKind::moe_unpermute, {linears_.grouped(experts.down, a, sorted[1]), sorted[2], weights},
                       {{"out_dtype", std::string(name_of(out))}});
}

/// A mixture of which this rank has some experts and tokens of its own, whose rows it exchanges.
ValueId LayerBuilder::exchanged_mixture(const Mixture& mixture, const Experts& experts, ValueId y) {
  Attributes attributes{
      {"k", mixture.experts_per_token}, {"renormalize", mixture.renormalize},  {"out_dtype", "f32"},
      {"ranks", shard_.expert_ranks},   {"group", std::string(experts_group)}, {"overlap", shard_.overlap}};
  CERMET_ASSERT(mixture.each.activation == Activation::silu);  // the only one of ep_moe
  std::vector<ValueId> scales, input_scales;
  if (linears_.is_plain(experts.down))
    attributes.set("hidden_dtype", std::string(name_of(linears_.input_type(experts.down))));
  for (const LinearStack* stack : {&experts.gate_up, &experts.down}) {
    linears_.refuse_folded_experts(*stack);
    const LinearScheme scheme = linears_.scheme_of(*stack);
    const bool quantized = !linears_.is_plain(*stack);
    scales.push_back(quantized ? linears_.weight_scale(*stack) : ValueId{});
    input_scales.push_back(scheme.input == LinearScheme::Input::fixed ? linears_.fixed_input(*stack).scale : ValueId{});
    if (quantized && linears_.quantized_attributes(scheme).find("range")) attributes.set("range", std::string("127.5"));
  }
  std::vector<ValueId> operands{y, linears_.weight(mixture.router), linears_.weight(experts.gate_up)};
  operands.insert(operands.end(), {linears_.weight(experts.down), {}, {}, scales[0], scales[1]});
  operands.insert(operands.end(), input_scales.begin(), input_scales.end());
  return graph().apply_all(OpKind::ep_moe, operands, attributes).front();
}

/// The same of rows that every rank gets. Each computes those of its experts, and the sum over ranks of a rank's rows
/// goes to that one. Operands have the same shapes on all ranks, whose passes are padded to one size.
ValueId LayerBuilder::gathered_mixture(const Mixture& mixture, const Experts& experts, ValueId y,
                                       std::span<const ValueId> chosen) {
  linears_.refuse_folded_experts(experts.gate_up);
  const Operand own =
      linears_.operand_for(experts.gate_up, y);  // quantized before they are sent, which is a quarter of float32
  // One message in place of three: numbers of experts are exact in float32. Those of padding are of no expert.
  std::vector<ValueId> sent{
      chosen[0], graph().apply(OpKind::max, {as_type(graph(), chosen[1], DType::f32), inputs_.least_expert})};
  Ints sizes{mixture.experts_per_token, mixture.experts_per_token};
  const bool has_scales = linears_.has_row_scales(own);
  if (has_scales) {
    sent.push_back(graph().apply(OpKind::reshape, {own.scale}, {{"shape", Ints{0, 1}}}));
    sizes.push_back(1);
  }
  const ValueId message = ranks_.gathered(graph().apply(OpKind::concat, sent, {{"axis", std::int64_t{1}}}),
                                          shard_.expert_ranks, experts_group);
  const std::vector<ValueId> received =
      graph().apply_all(OpKind::split, {message}, {{"axis", std::int64_t{-1}}, {"sizes", sizes}});
  Operand tokens{ranks_.gathered(own.x, shard_.expert_ranks, experts_group), own.scale};
  if (has_scales) tokens.scale = graph().apply(OpKind::reshape, {received[2]}, {{"shape", Ints{-1}}});
  const std::vector<ValueId> sorted = sorted_by_expert(mixture, tokens, as_type(graph(), received[1], DType::i32));
  return graph().apply(OpKind::reduce_scatter,
                       {expert_sums(mixture, experts, sorted_operand(tokens, sorted), sorted, received[0], DType::f32)},
                       {{"ranks", shard_.expert_ranks}, {"group", std::string(experts_group)}});
}

}  // namespace cermet
