// What builds decoder graphs of plain operators; rewrite rules make them those that kernels compute in one launch.
// Private to decoder*.cpp.
#pragma once

#include <span>

#include "model/decoder.hpp"

namespace cermet {

/// Modules of the checkpoint that share an input, their weights stacked by rows; for experts a stack of those.
struct LinearStack {
  std::string name;                               ///< of its constants in the graph
  std::vector<std::vector<std::string>> modules;  ///< by expert that the rank has; one entry where there are no experts
  std::int64_t rows = 0, columns = 0;             ///< of each stack
  bool bias = false;
  bool of_experts = false;  ///< a stack also where there is one expert

  LinearStack(const Linear& linear)  // NOLINT(google-explicit-constructor): a stack of one
      : LinearStack(linear.name, std::span(&linear, 1)) {}
  LinearStack(std::string name, std::span<const Linear> linears);
};

/// The left operand of GEMMs: unquantized, or quantized with its scale (per-token or per-tensor).
struct Operand {
  ValueId x, scale;
};

ValueId as_type(Graph& graph, ValueId x, DType type);

/// What a scheme makes of weights and inputs of linear modules: decoder_linear.cpp.
class LinearBuilder {
 public:
  /// With `with_taps` inputs of modules are outputs of the graph.
  LinearBuilder(DecoderGraph& out, const DecoderTypes& decoder_types, const Quantization& quantization, bool with_taps)
      : types(decoder_types), taps(with_taps), out_(out), quantization_(quantization) {}

  Graph& graph() { return out_.graph; }
  ValueId constant(const std::string& name, TensorType type, WeightSource source);
  void tap(const char* name, ValueId value);
  bool has_row_scales(const Operand& rows) { return rows.scale && graph().type(rows.scale).rank() > 0; }

  LinearScheme scheme_of(const LinearStack& stack) const;
  bool is_plain(const LinearStack& stack) const { return scheme_of(stack).input == LinearScheme::Input::real; }
  DType input_type(const LinearStack& stack) const;
  ValueId weight(const LinearStack& stack);
  ValueId weight_scale(const LinearStack& stack);
  struct FixedInput {
    ValueId scale, offset;
  };
  FixedInput fixed_input(const LinearStack& stack);
  Attributes quantized_attributes(const LinearScheme& scheme) const;
  void refuse_folded_experts(const LinearStack& stack) const;

  ValueId scalar(std::string_view name, double value);
  ValueId normalize(const Norm& norm, ValueId x, std::optional<DType> out = {});
  Operand operand_for(const LinearStack& next, ValueId x);
  ValueId project(const LinearStack& stack, const Operand& x, DType out = DType::f32);
  ValueId grouped(const LinearStack& stack, const Operand& x, ValueId offsets);

  const DecoderTypes& types;
  const bool taps;

 private:
  Dims weight_dims(const LinearStack& stack) const;
  bool folds_input_scale(const LinearScheme& scheme) const;
  ValueId bias(const LinearStack& stack);

  DecoderGraph& out_;
  const Quantization& quantization_;
};

/// What a rank's graph has beside the products where several ranks share them: decoder_parallel.cpp.
class RankBuilder {
 public:
  RankBuilder(Graph& graph, ModelShard own, const DecoderState& state, std::int64_t vocab_size)
      : shard(own),
        graph_(graph),
        shares_rows_(state.shares_rows && own.ranks > 1),
        most_tokens_(state.most_tokens),
        vocab_size_(vocab_size),
        own_vocabulary_(vocabulary_part(vocab_size, own)) {}

  Dim tokens() const { return shares_rows_ ? Dim(shard.ranks) * Dim::symbol("T") : Dim::symbol("T"); }
  ValueId from_first_rank(ValueId ids);
  ValueId embed(ValueId ids, ValueId table);
  ValueId sum_over(std::int64_t ranks, ValueId part);
  ValueId whole(ValueId rows);
  ValueId gathered(ValueId rows, std::int64_t ranks, const char* group);
  ValueId least_experts(ValueId slots, std::int64_t experts);
  ValueId join_vocabulary(ValueId logits);
  ValueId largest_of(ValueId logits);

  const ModelShard shard;

 private:
  ValueId summed(std::int64_t ranks, ValueId part);

  Graph& graph_;
  const bool shares_rows_;
  const std::int64_t most_tokens_, vocab_size_, own_vocabulary_;
};

/// Inputs of the graph that layers share.
struct LayerInputs {
  ValueId positions, slots, block_tables, context_lens, query_starts, cos, sin;
  ValueId least_expert = {};  ///< where ranks gather rows: f32[T, 1], 0, or of rows that pad a pass the number of
                              ///< experts, which none has
};

/// Layers: decoder_layer.cpp, decoder_mixture.cpp.
class LayerBuilder {
 public:
  LayerBuilder(LinearBuilder& linears, RankBuilder& ranks, const DecoderState& state, const LayerInputs& inputs)
      : linears_(linears), ranks_(ranks), shard_(ranks.shard), state_(state), inputs_(inputs) {}

  /// Adds a layer. `delta` is what the block before it adds to the residual stream `hidden`; returns that of its last.
  ValueId add(const Layer& layer, std::int64_t index, ValueId& hidden, ValueId delta);

 private:
  Graph& graph() { return linears_.graph(); }
  DType summand_type(std::int64_t ranks) const { return ranks == 1 ? DType::f32 : linears_.types.sums; }
  Operand normalized(const Norm& norm, const LinearStack& next, ValueId hidden, const char* tap_name);
  ValueId body(const Attention& attention, const Norm& norm, ValueId hidden);
  ValueId body(const FeedForward& part, const Norm& norm, ValueId hidden);
  ValueId body(const Mixture& mixture, const Norm& norm, ValueId hidden);
  std::vector<ValueId> projected(const Attention& attention, const LinearStack& qkv, const Operand& y);
  ValueId attended(const Attention& attention, ValueId q, ValueId k, ValueId v, DType out);
  Operand activated(const LinearStack& down, Activation activation, ValueId both, const char* tap_name);

  struct Experts {
    LinearStack gate_up, down;
  };
  Experts experts_of(const Mixture& mixture) const;
  bool quantizes_tokens(const Mixture& mixture) const;
  std::vector<ValueId> sorted_by_expert(const Mixture& mixture, const Operand& rows, ValueId chosen);
  Operand sorted_operand(const Operand& rows, std::span<const ValueId> sorted);
  ValueId expert_sums(const Mixture& mixture, const Experts& experts, const Operand& rows,
                      std::span<const ValueId> sorted, ValueId weights, DType out);
  ValueId exchanged_mixture(const Mixture& mixture, const Experts& experts, ValueId y);
  ValueId gathered_mixture(const Mixture& mixture, const Experts& experts, ValueId y, std::span<const ValueId> chosen);

  LinearBuilder& linears_;
  RankBuilder& ranks_;
  const ModelShard shard_;
  const DecoderState& state_;
  const LayerInputs& inputs_;
  std::int64_t index_ = 0;  ///< of the layer that is being added
};

}  // namespace cermet
