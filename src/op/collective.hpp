// Where each element of a collective's result comes from: the definition, one row per operator.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/tensor.hpp"

namespace cermet {

enum class Collective {
  all_reduce,
  reduce_to,
  reduce_scatter,
  all_gather,
  gather_to,
  scatter_from,
  broadcast_from,
  all_to_all
};

std::string_view name_of(Collective kind);  ///< the operator's

/// Most ranks of a group: sizes of results stay far from what 64 bits hold.
inline constexpr std::int64_t max_ranks = 1 << 20;

inline bool has_root(Collective kind) {
  return kind == Collective::reduce_to || kind == Collective::gather_to || kind == Collective::scatter_from ||
         kind == Collective::broadcast_from;
}
inline bool has_reduction(Collective kind) {
  return kind == Collective::all_reduce || kind == Collective::reduce_to || kind == Collective::reduce_scatter;
}
/// The operand is cut into a piece per rank along its first dimension.
inline bool cuts_operand(Collective kind) {
  return kind == Collective::reduce_scatter || kind == Collective::scatter_from || kind == Collective::all_to_all;
}
/// The result holds a piece per rank along its first dimension.
inline bool joins_result(Collective kind) { return kind == Collective::all_gather || kind == Collective::gather_to; }

/// A range of a rank's result, in pieces: with R ranks an operand or a result that is cut or joined has R pieces,
/// others are one piece.
struct PieceSource {
  enum class Kind { nothing, one_rank, every_rank } kind;
  std::int64_t rank = 0;   ///< whose operand, for one_rank
  std::int64_t piece = 0;  ///< which piece of it
};

/// Source of piece `piece` of the result of rank `rank`. A rank that receives nothing gets zeros.
inline PieceSource piece_source(Collective kind, std::int64_t rank, std::int64_t piece, std::int64_t root) {
  using Kind = PieceSource::Kind;
  switch (kind) {
    case Collective::all_reduce: return {Kind::every_rank, 0, 0};
    case Collective::reduce_to: return {rank == root ? Kind::every_rank : Kind::nothing, 0, 0};
    case Collective::reduce_scatter: return {Kind::every_rank, 0, rank};
    case Collective::all_gather: return {Kind::one_rank, piece, 0};
    case Collective::gather_to: return {rank == root ? Kind::one_rank : Kind::nothing, piece, 0};
    case Collective::scatter_from: return {Kind::one_rank, root, rank};
    case Collective::broadcast_from: return {Kind::one_rank, root, 0};
    case Collective::all_to_all: return {Kind::one_rank, piece, rank};
  }
  return {Kind::nothing, 0, 0};
}

/// One rank's own operand as the stacked operand of a group of one.
TensorView stacked_alone(const TensorView& own);

/// The counts operand of an uneven all_to_all, read in place.
class PairCounts {
 public:
  /// Throws Error unless every count is at least 0 and no rank sends or receives more than `rows` rows.
  PairCounts(const TensorView& counts, std::int64_t rows);
  /// Rows that rank `from` sends to rank `to`.
  std::int64_t at(std::int64_t from, std::int64_t to) const;
  /// Rows that rank `from` sends to ranks before `to`.
  std::int64_t sent_before(std::int64_t from, std::int64_t to) const;
  /// Rows that rank `to` is sent.
  std::int64_t received(std::int64_t to) const;

 private:
  TensorView counts_;
};

}  // namespace cermet
