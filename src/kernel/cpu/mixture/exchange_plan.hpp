// ep_moe with a rank's own tokens: memory of a call, and which rows go where.
#pragma once

#include <array>

#include "kernel/cpu/mixture/parts.hpp"
#include "kernel/workspace_layout.hpp"

namespace cermet::cpu {

/// Some of the rank's tokens, whose rows are sent, computed and sent back together. Sizes of memory are those of the
/// most tokens.
struct ExchangeBatch {
  std::int64_t begin = 0, tokens = 0;  ///< of the call's
  TensorView offsets, row_of;          ///< of the rows that are sent, sorted by expert: i32[E + 1], i32[T, k]
  TensorView dispatch, back_counts;    ///< i32[R, R]: rows between ranks, and the other way round
  TensorView runs;  ///< i32[R * E/R, 2]: where the rows of each sender and expert begin, as received and sorted
  TensorView sent, sent_scales;          ///< [rows, H], f32[rows, 1]
  TensorView received, received_scales;  ///< the same from other ranks
  ExpertRows experts;                    ///< of the rank's experts, in the memory of what was sent
  TensorView returned;                   ///< f32[rows, H]: results in the order in which rows came
  std::int64_t exchanged = 0;            ///< most rows that any rank sends or receives
};

/// Sizes of a call, and its memory.
struct ExchangeLayout : WorkspaceLayout {
  std::int64_t tokens, hidden, features, experts, ranks, k, room;  ///< room: rows of a batch
  ExpertTypes types;
  TensorView logits, weights, ids;  ///< of the rank's own tokens
  TensorView quantized, scales;     ///< of those, where experts are quantized
  TensorView counts, all_counts;    ///< i32: rows of each expert, [batches, E], of every rank, [R, batches, E]
  int batches;
  std::array<ExchangeBatch, 2> batch;

  /// For `token_count` of the problem's tokens.
  ExchangeLayout(const Problem& p, const ExpertTypes& types, std::int64_t token_count, std::byte* workspace);

  std::int64_t experts_each() const { return experts / ranks; }
  /// Rows of expert `expert` that rank `from` has in a batch.
  std::int32_t count(int b, std::int64_t from, std::int64_t expert) const {
    return all_counts.as<const std::int32_t>()[(from * batches + b) * experts + expert];
  }
};

inline TensorView first_rows(TensorView view, std::int64_t rows) {
  view.shape[0] = rows;
  return view;
}

/// From all_counts: what a batch sends and receives and in which order, as rank `rank`; makes its `experts` as long as
/// what comes.
void plan_exchange(ExchangeLayout& layout, int batch, std::int64_t rank);

/// Copies every run of rows of a batch from where it came to where it is sorted, or the other way.
enum class RunOrder : std::uint8_t { to_sorted, to_arrival };
void move_runs(const ExchangeLayout& layout, int batch, std::int64_t rank, const TensorView& from, const TensorView& to,
               RunOrder order, ThreadPool& pool);

}  // namespace cermet::cpu
