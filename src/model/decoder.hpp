// The graph of a decoder-only transformer: one builder for every supported architecture, because a ModelConfig is already normalised.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.hpp"
#include "model/config.hpp"

namespace cermet {

/// Where a weight of the graph comes from: matrix e of a stack (or the only one) is made of checkpoint tensors, stacked along their first axis.
struct WeightSource {
  std::vector<std::vector<std::string>> slices;
  /// int8 weights are made of real ones when they load: codes and scales, a scale for each row (absmax / 127, round to nearest).
  enum class Form : std::uint8_t { plain, codes, scales } form = Form::plain;
};

/// Element types of a graph. Residual stream, normalisation statistics, rotation, softmax and router weights are float32 in every mode.
struct DecoderTypes {
  DType weights = DType::f32;   ///< storage of weight matrices; i8: products of int8 codes, with a scale for each token and each row of the weight
  DType head = DType::f32;      ///< storage of the embedding table, the head and the router, which are never int8
  DType operands = DType::f32;  ///< what the left operand of a matrix product is rounded to by the operator that makes it
  DType cache = DType::f32;     ///< keys and values
};

struct DecoderGraph {
  Graph graph;
  std::unordered_map<std::string, WeightSource> sources;  ///< by the constant's name in the graph
};

/// Names of the graph's inputs and outputs. T = new tokens, B = sequences, R = rows for which logits are wanted.
namespace decoder_io {
inline constexpr const char* ids = "ids";                    ///< i32[T]
inline constexpr const char* positions = "positions";        ///< i32[T], in the sequence
inline constexpr const char* slots = "slots";                ///< i32[T], cache slot of each token
inline constexpr const char* block_tables = "block_tables";  ///< i32[B, pages]
inline constexpr const char* context_lens = "context_lens";  ///< i32[B], tokens after this pass
inline constexpr const char* query_starts = "query_starts";  ///< i32[B + 1], rows of each sequence
inline constexpr const char* logit_rows = "logit_rows";      ///< i32[R]
inline constexpr const char* rope_cos = "rope.cos";          ///< f32[positions, rotary_dim / 2]
inline constexpr const char* rope_sin = "rope.sin";
inline constexpr const char* logits = "logits";  ///< f32[R, vocab_size]
std::string key_cache(std::int64_t layer);       ///< [blocks, kv_heads, block, head_dim]
std::string value_cache(std::int64_t layer);
}  // namespace decoder_io

/// Sizes of the state that a decoder graph works on.
struct DecoderState {
  std::int64_t blocks = 0;              ///< pages of the cache
  std::int64_t block_size = 16;         ///< tokens of a page
  std::int64_t pages_per_sequence = 0;  ///< columns of the block table
  std::int64_t table_positions = 0;     ///< rows of the rotary tables
};

/// Builds the graph. Throws Error where an operator refuses its operands, which a validated config never causes.
DecoderGraph build_decoder(const ModelConfig& config, const DecoderTypes& types, const DecoderState& state);

}  // namespace cermet
