#include "model/decoder.hpp"

#include "base/error.hpp"
#include "model/decoder_builder.hpp"

namespace cermet {
namespace {

/// Inputs that every layer reads.
LayerInputs add_layer_inputs(Graph& graph, const DecoderState& state, const RopeParameters& rope, const Dim& tokens) {
  const Dim b = Dim::symbol("B");
  const auto indices = [&](const char* name, Dims dims) {
    return graph.add_input(name, {DType::i32, std::move(dims)});
  };
  const TensorType table{DType::f32, {state.table_positions, rope.rotary_dim / 2}};
  return {.positions = indices(decoder_io::positions, {tokens}),
          .slots = indices(decoder_io::slots, {tokens}),
          .block_tables = indices(decoder_io::block_tables, {b, state.pages_per_sequence}),
          .context_lens = indices(decoder_io::context_lens, {b}),
          .query_starts = indices(decoder_io::query_starts, {b + Dim(1)}),
          .cos = graph.add_input(decoder_io::rope_cos, table),
          .sin = graph.add_input(decoder_io::rope_sin, table)};
}

}  // namespace

namespace decoder_io {
std::string key_cache(std::int64_t layer) { return fmt::format("cache.{}.k", layer); }
std::string value_cache(std::int64_t layer) { return fmt::format("cache.{}.v", layer); }
std::string key_scales(std::int64_t layer) { return fmt::format("cache.{}.k_scale", layer); }
std::string value_scales(std::int64_t layer) { return fmt::format("cache.{}.v_scale", layer); }
}  // namespace decoder_io

DecoderGraph build_decoder(const ModelConfig& config, const DecoderTypes& types, const Quantization& quantization,
                           const DecoderState& state, ModelShard shard) {
  check_shard(config, quantization, shard);
  const DecoderModel model = sharded(config.decoder, shard);
  DecoderGraph out;
  Graph& graph = out.graph;
  LinearBuilder linears(out, types, quantization, false);
  RankBuilder ranks(graph, shard, state, config.vocab_size);
  graph.name = config.architecture_name;
  const ValueId ids = graph.add_input(decoder_io::ids, {DType::i32, {ranks.tokens()}});
  LayerInputs inputs = add_layer_inputs(graph, state, config.rope, ranks.tokens());
  if (shard.gathers_rows()) inputs.least_expert = ranks.least_experts(inputs.slots, config.experts);
  const ValueId own_ids = ranks.from_first_rank(ids);
  const ValueId logit_rows = graph.add_input(decoder_io::logit_rows, {DType::i32, {Dim::symbol("R")}});
  const std::string table = model.embedding.name + ".weight";
  const TensorType table_type{types.weights, {model.embedding.rows, model.embedding.columns}};
  ValueId hidden = ranks.embed(own_ids, linears.constant(table, table_type, {.slices = {{table}}})), delta;
  if (model.embedding_scale != 1)
    hidden = graph.apply(OpKind::mul, {hidden, linears.scalar("embedding.scale", model.embedding_scale)});
  LayerBuilder layers(linears, ranks, state, inputs);
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    delta = layers.add(model.layers[i], static_cast<std::int64_t>(i), hidden, delta);
  hidden = graph.apply(OpKind::add, {delta, hidden});
  LinearStack head = model.head;
  if (!linears.is_plain(head)) head.name = "lm_head";  // beside the embeddings, which it shares otherwise
  ValueId rows = ranks.whole(linears.normalize(model.norm, hidden, linears.input_type(head)));
  if (!state.every_row)
    rows = graph.apply(OpKind::gather, {rows, logit_rows}, {{"axis", std::int64_t{0}}}, "last_hidden");
  ValueId logits = linears.project(head, linears.operand_for(head, rows));
  if (model.logit_softcap > 0) {
    const ValueId cap = linears.scalar("logits.softcap", model.logit_softcap);
    logits = graph.apply(OpKind::mul, {graph.apply(OpKind::tanh, {graph.apply(OpKind::div, {logits, cap})}), cap});
  }
  if (state.parts_of_logits) {
    graph.add_output(decoder_io::logits_part, logits);
    graph.add_output(decoder_io::largest, ranks.largest_of(logits));
  } else {
    graph.add_output(decoder_io::logits, ranks.join_vocabulary(logits));
  }
  return out;
}

Graph build_joined_logits(const ModelConfig& config, ModelShard shard) {
  Graph graph;
  graph.name = fmt::format("{}.logits", config.architecture_name);
  const std::int64_t columns = vocabulary_part(config.vocab_size, shard);
  const ValueId part = graph.add_input(decoder_io::logits_part, {DType::f32, {Dim::symbol("R"), columns}});
  graph.add_output(decoder_io::logits, RankBuilder(graph, shard, {}, config.vocab_size).join_vocabulary(part));
  return graph;
}

DecoderGraph build_decoder_layer(const ModelConfig& config, const DecoderTypes& types, const Quantization& quantization,
                                 const DecoderState& state, std::int64_t layer, bool taps) {
  require(layer >= 0 && layer < config.layers, "layer: expected 0 to {}, found {}", config.layers - 1, layer);
  DecoderGraph out;
  LinearBuilder linears(out, types, quantization, taps);
  RankBuilder ranks(out.graph, {}, state, config.vocab_size);
  out.graph.name = fmt::format("{}.layers.{}", config.architecture_name, layer);
  ValueId hidden = out.graph.add_input(decoder_io::hidden, {DType::f32, {ranks.tokens(), config.hidden_size}});
  const LayerInputs inputs = add_layer_inputs(out.graph, state, config.rope, ranks.tokens());
  const ValueId delta = LayerBuilder(linears, ranks, state, inputs)
                            .add(config.decoder.layers[static_cast<std::size_t>(layer)], layer, hidden, {});
  out.graph.add_output(decoder_io::hidden, out.graph.apply(OpKind::add, {delta, hidden}));
  return out;
}

}  // namespace cermet
