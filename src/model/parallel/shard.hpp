// Tensor parallelism: which part of a model each rank holds. Attention is split by heads, feed-forward parts by their inner dimension, embedding and head by
// the vocabulary; norms and routers are whole on every rank.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "model/checkpoint/quantization.hpp"

namespace cermet {

/// A rank's place among those that share the matrices of a model.
struct ModelShard {
  std::int64_t rank = 0, ranks = 1;
  friend bool operator==(const ModelShard&, const ModelShard&) = default;
};

/// Throws Error naming the field of config.json whose value cannot be spread over so many ranks, or the module whose packed columns cannot be cut.
/// Heads, and the inner dimensions of feed-forward parts and experts, must be multiples of `ranks`; heads of keys must be, too, or divide it: then
/// several ranks hold the same one. A vocabulary is padded.
void check_shard(const ModelConfig& config, const Quantization& quantization, ModelShard shard);

/// Sizes of what a rank computes: its heads, its share of inner dimensions. Hidden size, vocabulary and number of experts stay those of the model.
ModelConfig config_of(const ModelConfig& whole, ModelShard shard);

/// Rows of embedding and head that each rank holds; those beyond the vocabulary are zeros.
std::int64_t vocabulary_part(const ModelConfig& whole, ModelShard shard);

/// The part of a tensor that a rank holds: elements begin .. begin + count along an axis. `present` of them are stored, the rest is zero.
struct TensorPart {
  int axis = 0;
  std::int64_t begin = 0, count = 0, present = 0;
};

/// Parts of linear modules' weights, by the module's name ("model.layers.0.mlp.down_proj", "model.embed_tokens"); modules that are whole everywhere are not
/// in it. Along axis 0 everything that is stored for each row is cut with it; along axis 1 the weight alone.
std::unordered_map<std::string, TensorPart> module_parts(const ModelConfig& whole, ModelShard shard);

}  // namespace cermet
