// Builds decoder graphs of plain operators, layer after layer; rewrite rules make them those that kernels compute in
// one launch. Members are what all layers share. Private to decoder*.cpp.
#pragma once

#include <span>

#include "model/decoder.hpp"

namespace cermet {

/// A linear of the graph: modules of the checkpoint that share an input, their weights stacked by rows; for experts a
/// stack of those.
struct Linear {
  std::string name;                               ///< of its constants in the graph
  std::vector<std::vector<std::string>> modules;  ///< by expert that the rank has; one entry where there are no experts
  std::int64_t rows = 0, columns = 0;             ///< of each stack
  bool bias = false;
  bool of_experts = false;  ///< a stack also where there is one expert
};

/// The left operand of GEMMs: unquantized, or quantized with its scale (per-token or per-tensor).
struct Operand {
  ValueId x, scale;
};

class DecoderBuilder {
 public:
  DecoderBuilder(const ModelConfig& config, const DecoderTypes& types, const Quantization& quantization,
                 const DecoderState& state, bool taps, ModelShard shard = {})
      : config_(config_of(config, shard)),
        shard_(shard),
        experts_(experts_of(config, shard)),
        types_(types),
        quantization_(quantization),
        state_(state),
        taps_(taps) {}

  // Each may be called once for a builder.
  DecoderGraph build();
  DecoderGraph build_layer(std::int64_t index);
  DecoderGraph build_joined_logits();

 private:
  Graph& graph() { return out_.graph; }
  void declare_inputs();

  // Layers. `delta` is what the previous part adds to the residual stream `hidden`.
  ValueId layer(std::int64_t layer, ValueId& hidden, ValueId delta);
  ValueId attention(std::int64_t layer, const Linear& qkv, const Operand& y);
  ValueId feed_forward(std::int64_t layer, const Linear& gate_up, const Operand& y);
  ValueId mixture(std::int64_t layer, const Linear& gate_up, ValueId y);
  bool quantizes_tokens() const;
  std::vector<ValueId> sorted_by_expert(const Operand& rows, ValueId chosen);
  bool has_row_scales(const Operand& rows) { return rows.scale && graph().type(rows.scale).rank() > 0; }
  Operand sorted_operand(const Operand& rows, std::span<const ValueId> sorted);
  ValueId expert_sums(std::int64_t layer, const Linear& gate_up, const Operand& rows, std::span<const ValueId> sorted,
                      ValueId weights, DType out);
  ValueId heads_of(ValueId x, std::int64_t heads);
  void tap(const char* name, ValueId value);

  // Ranks that share the matrices: decoder_parallel.cpp.
  std::int64_t vocabulary_rows() const { return vocabulary_part(config_, shard_); }
  ValueId from_first_rank(ValueId ids);
  ValueId embed(ValueId ids, ValueId table);
  DType summand_type(std::int64_t ranks) const { return ranks == 1 ? DType::f32 : types_.sums; }
  ValueId sum_over(std::int64_t ranks, ValueId part);
  ValueId summed(std::int64_t ranks, ValueId part);
  bool shares_rows() const { return state_.shares_rows && shard_.ranks > 1; }
  Dim tokens() const { return shares_rows() ? Dim(shard_.ranks) * Dim::symbol("T") : Dim::symbol("T"); }
  ValueId whole(ValueId rows);
  ValueId exchanged_mixture(std::int64_t layer, const Linear& gate_up, ValueId y);
  ValueId gathered_mixture(std::int64_t layer, const Linear& gate_up, ValueId y, std::span<const ValueId> chosen);
  ValueId gathered(ValueId rows, std::int64_t ranks, const char* group);
  ValueId least_experts();
  ValueId join_vocabulary(ValueId logits);
  ValueId largest_of(ValueId logits);

  // Linear modules of a layer.
  Linear qkv_linear(std::int64_t layer) const;
  Linear gate_up_linear(std::int64_t layer) const;
  Linear down_linear(std::int64_t layer) const;
  Linear router_linear(std::int64_t layer) const;

  // Constants.
  ValueId constant(const std::string& name, TensorType type, WeightSource source);
  ValueId vector(const std::string& name, std::int64_t length);

  // Operands and products: decoder_linear.cpp.
  LinearScheme scheme_of(const Linear& linear) const;
  DType values_for(const LinearScheme& scheme) const;
  Dims weight_dims(const Linear& linear) const;
  ValueId weight(const Linear& linear);
  ValueId weight_scale(const Linear& linear);
  ValueId bias(const Linear& linear);
  struct FixedInput {
    ValueId scale, offset;
  };
  FixedInput fixed_input(const Linear& linear);
  bool folds_input_scale(const LinearScheme& scheme) const;
  Operand fixed_operand(ValueId codes, const FixedInput& input, const Linear& next) const;
  Attributes code_attributes(const LinearScheme& scheme) const;
  ValueId normalize(ValueId& hidden, ValueId delta, const std::string& name, DType out);
  Operand normalize_for(const Linear& next, ValueId& hidden, ValueId delta, const std::string& name,
                        const char* tap_name);
  Operand operand_for(const Linear& next, ValueId x);
  ValueId project(const Linear& linear, const Operand& x, DType out = DType::f32);
  void refuse_folded_experts(const Linear& linear) const;
  ValueId grouped(const Linear& linear, const Operand& x, ValueId offsets);
  Operand gated(const Linear& gate_up, const Linear& down, const Operand& y, const char* tap_name);
  Operand activated(const Linear& down, ValueId both, const char* tap_name);
  std::vector<ValueId> project_apart(const Linear& stack, std::span<const std::int64_t> rows, ValueId x);
  bool is_plain(const Linear& linear) const { return scheme_of(linear).input == LinearScheme::Input::real; }
  ValueId as_type(ValueId x, DType type);

  const ModelConfig config_;  ///< of what this rank computes
  const ModelShard shard_;
  const ExpertRange experts_;  ///< the rank's own
  const DecoderTypes& types_;
  const Quantization& quantization_;
  const DecoderState& state_;
  const bool taps_;
  DecoderGraph out_;
  ValueId positions_, slots_, block_tables_, context_lens_, query_starts_, cos_, sin_;
  ValueId least_expert_;  ///< where ranks gather rows: f32[T, 1], 0, or of rows that pad a pass the number of experts,
                          ///< which none has
};

}  // namespace cermet
