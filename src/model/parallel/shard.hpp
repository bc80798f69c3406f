// Tensor parallelism: which part of a model each rank holds. Attention is split by heads, feed-forward parts by their inner dimension, embedding and head by
// the vocabulary; norms and routers are whole on every rank.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/checkpoint/quantization.hpp"

namespace cermet {

/// A rank's place among those that share the matrices of a model.
struct ModelShard {
  std::int64_t rank = 0, ranks = 1;
  friend bool operator==(const ModelShard&, const ModelShard&) = default;
};

/// Throws Error naming what cannot be spread over so many ranks: a rank outside [0, ranks), or a module whose packed columns cannot be cut.
void check_shard(const ModelConfig& config, const Quantization& quantization, ModelShard shard);

/// Sizes of what a rank computes: its heads, its share of inner dimensions. Hidden size, vocabulary and number of experts stay those of the model. What does
/// not divide is padded with zeros, alike on all ranks. Heads of keys stay shared by their heads of queries where every rank has whole groups, or all its
/// heads are of one group; otherwise each head of queries has a copy of its own.
ModelConfig config_of(const ModelConfig& whole, ModelShard shard);

/// Rows of embedding and head that each rank holds; those beyond the vocabulary are zeros.
std::int64_t vocabulary_part(const ModelConfig& whole, ModelShard shard);

/// The part of a tensor that a rank holds along an axis: one segment after another.
struct TensorPart {
  struct Segment {
    std::int64_t begin = 0;  ///< in the stored tensor; nothing is stored where negative: zeros
    std::int64_t count = 0;
  };
  int axis = 0;
  std::vector<Segment> segments;

  std::int64_t count() const;
};

/// Parts of linear modules' weights, by the module's name ("model.layers.0.mlp.down_proj", "model.embed_tokens"); modules that are whole everywhere are not
/// in it. Along axis 0 everything that is stored for each row is cut with it; along axis 1 the weight alone.
std::unordered_map<std::string, TensorPart> module_parts(const ModelConfig& whole, ModelShard shard);

}  // namespace cermet
