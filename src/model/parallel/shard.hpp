// Which part of a model each rank holds. Tensor parallelism: attention is split by heads, feed-forward parts by their
// inner dimension, embedding and head by the vocabulary; norms and routers are whole on every rank. Expert parallelism:
// each rank has some of a mixture's experts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/checkpoint/quantization.hpp"
#include "model/parallel/expert_exchange.hpp"

namespace cermet {

/// A rank's place among those that share a model.
struct ModelShard {
  std::int64_t rank = 0, ranks = 1;  ///< among those that share the matrices
  /// Among those that have different experts: all ranks where no matrix is shared; else `ranks` in groups of
  /// neighbours, each of which shares the matrices of its experts.
  std::int64_t expert_rank = 0, expert_ranks = 1;
  /// Whether each of the latter has tokens of its own, and all but the experts of others: rows go to the ranks of their
  /// experts, and results come back.
  bool own_tokens = false;
  ExpertExchange exchange = ExpertExchange::rows;  ///< then: how
  bool overlap = false;  ///< of rows: half of a pass's is on its way while the other half is computed

  /// Place of one of max(tensor, experts) ranks. Throws Error(unsupported) unless one of the two is 1 or `experts`
  /// divides `tensor`.
  static ModelShard of(std::int64_t rank, std::int64_t tensor, std::int64_t experts);
  /// Place of one of `experts` ranks that have tokens of their own.
  static ModelShard with_own_tokens(std::int64_t rank, std::int64_t experts, ExpertExchange exchange, bool overlap) {
    return {.expert_rank = rank, .expert_ranks = experts, .own_tokens = true, .exchange = exchange, .overlap = overlap};
  }
  bool exchanges_rows() const { return own_tokens && exchange == ExpertExchange::rows; }
  bool gathers_rows() const { return own_tokens && exchange == ExpertExchange::gather; }
  /// All ranks that have the same tokens, each of which adds a summand of every mixture.
  std::int64_t all() const { return own_tokens ? ranks : std::max(ranks, expert_ranks); }
  /// Ranks that share the matrices of the same experts, and this one's place among them.
  std::int64_t ranks_of_expert() const { return std::max<std::int64_t>(1, ranks / expert_ranks); }
  std::int64_t rank_of_expert() const { return rank % ranks_of_expert(); }
  friend bool operator==(const ModelShard&, const ModelShard&) = default;
};

/// Throws Error naming what cannot be spread over so many ranks: a rank outside [0, ranks), experts that are fewer than
/// ranks or, where their rows are exchanged, not divided by them, or a module whose packed columns cannot be cut.
void check_shard(const ModelConfig& config, const Quantization& quantization, ModelShard shard);

/// What a rank computes: its heads, its share of inner dimensions and of the vocabulary, and its experts, of which some
/// ranks have one more where ranks do not divide them. Other sizes that do not divide are padded with zeros, alike on
/// all ranks. Heads of keys stay shared by their heads of queries where every rank has whole groups, or all its heads
/// are of one group; otherwise each head of queries has a copy of its own.
DecoderModel sharded(DecoderModel model, ModelShard shard);

/// Rows of embedding and head that each rank holds; those beyond the vocabulary are zeros.
std::int64_t vocabulary_part(std::int64_t vocab_size, ModelShard shard);

}  // namespace cermet
