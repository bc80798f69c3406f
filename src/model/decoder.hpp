// The graph of a decoder-only transformer, from the blocks of its architecture.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.hpp"
#include "model/checkpoint/quantization.hpp"
#include "model/parallel/shard.hpp"

namespace cermet {

/// Where a weight of the graph comes from: matrix e of a stack (or the only one) is made of checkpoint tensors, stacked
/// along their first axis.
struct WeightSource {
  std::vector<std::vector<std::string>> slices;
  enum class Form : std::uint8_t {
    plain,    ///< the tensors' elements, converted; dequantized where the graph wants a floating type
    rounded,  ///< real tensors with stored scales are rounded to quantized values, dequantized for floating types
    codes,    ///< rows quantized while they load (absmax over the largest quantized value, round to nearest)
    scales,   ///< their per-row scales
    channel_scales,  ///< stored scales of rows: "X.weight_scale", [N, 1], [N] or one for all rows of "X.weight"
    scalar,          ///< the first tensor's only element
  } form = Form::plain;
  DType code_type = DType::i8;  ///< of `rounded`, `codes` and `scales`: i8 or f8_e4m3
};

/// Element types of a graph. Residual stream, normalization statistics, arithmetic of rotation, softmax and router
/// weights are float32 in every mode.
struct DecoderTypes {
  DType weights = DType::f32;   ///< storage of unquantized weight matrices
  DType operands = DType::f32;  ///< of left operands of unquantized GEMMs, rounded by the operator that makes them
  DType cache = DType::f32;     ///< keys and values; i8: quantized with per-token, per-head scales
  DType queries = DType::f32;   ///< rotated queries, as attention reads them
  DType sums = DType::f32;      ///< of a rank's summands of a product, rounded before ranks add them
};

struct DecoderGraph {
  Graph graph;
  std::unordered_map<std::string, WeightSource> sources;  ///< by the constant's name in the graph
};

/// Names of the graph's inputs and outputs. T = new tokens, B = sequences, R = rows for which logits are wanted.
namespace decoder_io {
inline constexpr const char* ids = "ids";                    ///< i32[T]
inline constexpr const char* positions = "positions";        ///< i32[T], rows of the rotary tables (RotaryTables)
inline constexpr const char* slots = "slots";                ///< i32[T], cache slot of each token
inline constexpr const char* block_tables = "block_tables";  ///< i32[B, pages]
inline constexpr const char* context_lens = "context_lens";  ///< i32[B], tokens after this pass
inline constexpr const char* query_starts = "query_starts";  ///< i32[B + 1], rows of each sequence
inline constexpr const char* logit_rows = "logit_rows";      ///< i32[R]
inline constexpr const char* rope_cos = "rope.cos";          ///< f32[rows, rotary_dim / 2]
inline constexpr const char* rope_sin = "rope.sin";
inline constexpr const char* logits = "logits";  ///< f32[R, vocab_size]
/// Of ranks that keep parts of the logits (DecoderState::parts_of_logits), in place of those: f32[R, columns of a
/// rank], and i32[R], the id of each row's largest.
inline constexpr const char* logits_part = "logits.part";
inline constexpr const char* largest = "largest";
std::string key_cache(std::int64_t layer);  ///< [blocks, kv_heads, block, head_dim]
std::string value_cache(std::int64_t layer);
std::string key_scales(std::int64_t layer);  ///< f32[blocks, kv_heads, block], where the cache is i8
std::string value_scales(std::int64_t layer);

// Of a layer alone.
inline constexpr const char* hidden = "hidden";    ///< f32[T, hidden_size], the residual stream: input and output
inline constexpr const char* tap_qkv = "tap.qkv";  ///< f32[T, hidden_size], input of q_proj, k_proj and v_proj
inline constexpr const char* tap_o = "tap.o";      ///< f32[T, heads * head_dim], input of o_proj
inline constexpr const char* tap_gate_up = "tap.gate_up";  ///< f32[T, hidden_size], input of gate_proj and up_proj
inline constexpr const char* tap_down = "tap.down";        ///< f32[T, intermediate_size], input of down_proj
inline constexpr const char* tap_experts = "tap.experts";  ///< f32[T, hidden_size], input of router and experts
inline constexpr const char* tap_router = "tap.router";    ///< f32[T, experts], the router's logits
/// i32[experts + 1], first row of each expert in the two below.
inline constexpr const char* tap_expert_rows = "tap.expert_rows";
/// f32[T * experts_per_token, hidden_size], tokens sorted by expert, and f32[T * experts_per_token,
/// expert_intermediate_size], input of their down_proj.
inline constexpr const char* tap_expert_input = "tap.expert_input";
inline constexpr const char* tap_expert_down = "tap.expert_down";
}  // namespace decoder_io

/// Sizes of the state that a decoder graph works on.
struct DecoderState {
  std::int64_t blocks = 0;              ///< pages of the cache
  std::int64_t block_size = 16;         ///< tokens of a page
  std::int64_t pages_per_sequence = 0;  ///< columns of the block table
  std::int64_t table_positions = 0;     ///< rows of the rotary tables
  bool every_row = false;               ///< whether every token has logits, so that no rows are selected and R is T
  /// Of ranks that have parts of the vocabulary: each keeps its part of the logits, and all find the largest of every
  /// row (decoder_io::largest).
  bool parts_of_logits = false;
  /// Each of several ranks has a share of the rows between the parts of a layer (sequence parallelism, Korthikanti et
  /// al. 2022): sums are scattered, and what is normalized is gathered. T is then a rank's share of the pass's tokens.
  bool shares_rows = false;
  /// Tokens of a pass at most; 0: not known. Of few a GPU's kernels sort and quantize the rows of experts inside the
  /// product, where they are sorted first; of one the parts of its logits need no transposition.
  std::int64_t most_tokens = 0;
};

/// Name of the ranks that share a model, which nodes of its graph that communicate give (kernel/communicator.hpp).
inline constexpr const char* model_group = "model";
/// Name of the ranks that share a mixture's experts and nothing else.
inline constexpr const char* experts_group = "experts";

/// Builds the graph, or a rank's part of it, whose nodes communicate with the other ranks' and whose weights are
/// sharded_reader()'s. Throws Error where modules that share an input differ in their schemes, or where an operator
/// refuses its operands, which a validated config never causes.
DecoderGraph build_decoder(const ModelConfig& config, const DecoderTypes& types, const Quantization& quantization,
                           const DecoderState& state, ModelShard shard = {});

/// What joins those parts on every rank: from decoder_io::logits_part to decoder_io::logits.
Graph build_joined_logits(const ModelConfig& config, ModelShard shard);

/// One layer alone, from the residual stream before it to that after it. Inputs: decoder_io::hidden, positions, slots,
/// block_tables, context_lens, query_starts, the rotary tables and the layer's caches. With `taps` the inputs of its
/// linear modules are outputs too, as float32 (decoder_io::tap_*), quantized in steps of their own where a module's
/// input is.
DecoderGraph build_decoder_layer(const ModelConfig& config, const DecoderTypes& types, const Quantization& quantization,
                                 const DecoderState& state, std::int64_t layer, bool taps);

}  // namespace cermet
