#include "model/decoder.hpp"

#include "base/error.hpp"
#include "model/decoder_builder.hpp"

namespace cermet {
void DecoderBuilder::declare_inputs() {
  const Dim b = Dim::symbol("B");
  positions_ = graph().add_input(decoder_io::positions, {DType::i32, {tokens()}});
  slots_ = graph().add_input(decoder_io::slots, {DType::i32, {tokens()}});
  block_tables_ = graph().add_input(decoder_io::block_tables, {DType::i32, {b, state_.pages_per_sequence}});
  context_lens_ = graph().add_input(decoder_io::context_lens, {DType::i32, {b}});
  query_starts_ = graph().add_input(decoder_io::query_starts, {DType::i32, {b + Dim(1)}});
  const TensorType table{DType::f32, {state_.table_positions, config_.rope.rotary_dim / 2}};
  cos_ = graph().add_input(decoder_io::rope_cos, table);
  sin_ = graph().add_input(decoder_io::rope_sin, table);
}

ValueId DecoderBuilder::constant(const std::string& name, TensorType type, WeightSource source) {
  if (const ValueId known = graph().find(name)) return known;
  out_.sources.emplace(name, std::move(source));
  return graph().add_constant(name, std::move(type));
}

/// A vector, widened to float32: it is small, and every kernel computes in float32.
ValueId DecoderBuilder::vector(const std::string& name, std::int64_t length) {
  return constant(name, {DType::f32, {length}}, {.slices = {{name}}});
}

DecoderGraph DecoderBuilder::build() {
  out_.graph.name = config_.architecture_name;
  const ValueId ids = graph().add_input(decoder_io::ids, {DType::i32, {tokens()}});
  declare_inputs();
  if (shard_.gathers_rows()) least_expert_ = least_experts();
  const ValueId own_ids = from_first_rank(ids);
  const ValueId logit_rows = graph().add_input(decoder_io::logit_rows, {DType::i32, {Dim::symbol("R")}});
  const std::string embedding = "model.embed_tokens.weight";
  const ValueId table =
      constant(embedding, {types_.weights, {vocabulary_rows(), config_.hidden_size}}, {.slices = {{embedding}}});
  ValueId hidden = embed(own_ids, table);
  ValueId delta;
  for (std::int64_t i = 0; i < config_.layers; ++i) delta = layer(i, hidden, delta);
  const std::string module = config_.tie_word_embeddings ? "model.embed_tokens" : "lm_head";
  Linear head{module, {{module}}, vocabulary_rows(), config_.hidden_size};
  if (scheme_of(head) != LinearScheme{}) head.name = "lm_head";  // beside the embeddings, which it shares otherwise
  ValueId rows = whole(normalize(hidden, delta, "model.norm.weight", values_for(scheme_of(head))));
  if (!state_.every_row)
    rows = graph().apply(OpKind::gather, {rows, logit_rows}, {{"axis", std::int64_t{0}}}, "last_hidden");
  const ValueId logits = project(head, operand_for(head, rows));
  if (state_.parts_of_logits) {
    graph().add_output(decoder_io::logits_part, logits);
    graph().add_output(decoder_io::largest, largest_of(logits));
  } else {
    graph().add_output(decoder_io::logits, join_vocabulary(logits));
  }
  return std::move(out_);
}

DecoderGraph DecoderBuilder::build_joined_logits() {
  out_.graph.name = fmt::format("{}.logits", config_.architecture_name);
  const ValueId part = graph().add_input(decoder_io::logits_part, {DType::f32, {Dim::symbol("R"), vocabulary_rows()}});
  graph().add_output(decoder_io::logits, join_vocabulary(part));
  return std::move(out_);
}

DecoderGraph DecoderBuilder::build_layer(std::int64_t index) {
  out_.graph.name = fmt::format("{}.layers.{}", config_.architecture_name, index);
  ValueId hidden = graph().add_input(decoder_io::hidden, {DType::f32, {tokens(), config_.hidden_size}});
  declare_inputs();
  const ValueId delta = layer(index, hidden, {});
  graph().add_output(decoder_io::hidden, graph().apply(OpKind::add, {delta, hidden}));
  return std::move(out_);
}

namespace decoder_io {
std::string key_cache(std::int64_t layer) { return fmt::format("cache.{}.k", layer); }
std::string value_cache(std::int64_t layer) { return fmt::format("cache.{}.v", layer); }
std::string key_scales(std::int64_t layer) { return fmt::format("cache.{}.k_scale", layer); }
std::string value_scales(std::int64_t layer) { return fmt::format("cache.{}.v_scale", layer); }
}  // namespace decoder_io

DecoderGraph build_decoder(const ModelConfig& config, const DecoderTypes& types, const Quantization& quantization,
                           const DecoderState& state, ModelShard shard) {
  check_shard(config, quantization, shard);
  return DecoderBuilder(config, types, quantization, state, false, shard).build();
}

Graph build_joined_logits(const ModelConfig& config, ModelShard shard) {
  return DecoderBuilder(config, {}, {}, {}, false, shard).build_joined_logits().graph;
}

DecoderGraph build_decoder_layer(const ModelConfig& config, const DecoderTypes& types, const Quantization& quantization,
                                 const DecoderState& state, std::int64_t layer, bool taps) {
  require(layer >= 0 && layer < config.layers, "layer: expected 0 to {}, found {}", config.layers - 1, layer);
  return DecoderBuilder(config, types, quantization, state, taps).build_layer(layer);
}

}  // namespace cermet
