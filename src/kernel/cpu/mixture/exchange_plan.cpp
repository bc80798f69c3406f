#include "kernel/cpu/mixture/exchange_plan.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/thread_pool.hpp"
#include "op/mixture.hpp"
#include "op/schema/infer.hpp"

namespace cermet::cpu {

ExchangeLayout::ExchangeLayout(const Problem& p, const ExpertTypes& expert_types, std::int64_t token_count,
                               std::byte* workspace)
    : WorkspaceLayout{workspace},
      tokens(token_count),
      hidden(p.size(mixture_x, 1)),
      features(p.size(mixture_down, 2)),
      experts(p.size(mixture_router, 0)),
      ranks(p.attributes.integer("ranks")),
      k(p.attributes.integer("k")),
      room(0),
      types(expert_types),
      batches(p.attributes.flag("overlap") ? 2 : 1) {
  const std::int64_t most = p.size(mixture_x, 0), most_of_batch = div_up(most, batches);
  room = most_of_batch * exchanged_rows_per_token(p);
  logits = place(DType::f32, {tokens, experts});
  weights = place(DType::f32, {tokens, k});
  ids = place(DType::i32, {tokens, k});
  if (types.quantizes_x) quantized = place(types.x, {tokens, hidden});
  if (types.x_scales) scales = place(DType::f32, {tokens});
  counts = place(DType::i32, {batches * experts});
  all_counts = place(DType::i32, {ranks * batches * experts});
  for (int b = 0; b < batches; ++b) {
    ExchangeBatch& own = batch[static_cast<std::size_t>(b)];
    own.begin = b * div_up(tokens, batches);
    own.tokens = std::min(div_up(tokens, batches), tokens - own.begin);
    own.offsets = place(DType::i32, {experts + 1});
    own.row_of = place(DType::i32, {most_of_batch, k});
    own.dispatch = place(DType::i32, {ranks, ranks});
    own.back_counts = place(DType::i32, {ranks, ranks});
    own.runs = place(DType::i32, {experts, 2});
    own.sent = place(types.x, {room, hidden});
    own.received = place(types.x, {room, hidden});
    if (types.x_scales)
      own.sent_scales = place(DType::f32, {room, 1}), own.received_scales = place(DType::f32, {room, 1});
    own.experts.offsets = place(DType::i32, {experts_each() + 1});
    own.experts.gated = place(DType::f32, {room, 2 * features});
    if (types.rounds_hidden) own.experts.hidden = place(types.hidden, {room, features});
    if (types.hidden_scales) own.experts.hidden_scales = place(DType::f32, {room});
    own.experts.results = place(DType::f32, {room, hidden});
    own.returned = place(DType::f32, {room, hidden});
  }
}

namespace {

/// Fills dispatch and its transpose; returns the most rows that any rank sends or receives.
std::int64_t count_pairs(const ExchangeLayout& l, int b) {
  const ExchangeBatch& batch = l.batch[static_cast<std::size_t>(b)];
  std::int64_t most = 0;
  auto *to = batch.dispatch.as<std::int32_t>(), *back = batch.back_counts.as<std::int32_t>();
  for (std::int64_t i = 0; i < l.ranks; ++i) {
    std::int64_t sent = 0, received = 0;
    for (std::int64_t j = 0; j < l.ranks; ++j) {
      std::int32_t rows = 0, coming = 0;
      for (std::int64_t e = 0; e < l.experts_each(); ++e) {
        rows += l.count(b, i, j * l.experts_each() + e);
        coming += l.count(b, j, i * l.experts_each() + e);
      }
      to[i * l.ranks + j] = back[j * l.ranks + i] = rows;
      sent += rows;
      received += coming;
    }
    most = std::max({most, sent, received});
  }
  return most;
}

/// Received rows lie sender by sender, each sender's by expert: notes where each such run begins, and where among the
/// rows sorted by expert.
std::int64_t note_runs(const ExchangeLayout& l, int b, std::int64_t rank) {
  const ExchangeBatch& batch = l.batch[static_cast<std::size_t>(b)];
  auto *runs = batch.runs.as<std::int32_t>(), *offsets = batch.experts.offsets.as<std::int32_t>();
  const std::int64_t each = l.experts_each();
  std::int32_t begin = 0, sorted = 0;
  for (std::int64_t from = 0; from < l.ranks; ++from)
    for (std::int64_t e = 0; e < each; ++e) {
      runs[2 * (from * each + e)] = begin;
      begin += l.count(b, from, rank * each + e);
    }
  for (std::int64_t e = 0; e < each; ++e) {
    offsets[e] = sorted;
    for (std::int64_t from = 0; from < l.ranks; ++from) {
      runs[2 * (from * each + e) + 1] = sorted;
      sorted += l.count(b, from, rank * each + e);
    }
  }
  offsets[each] = sorted;
  return sorted;
}

}  // namespace

void plan_exchange(ExchangeLayout& l, int b, std::int64_t rank) {
  ExchangeBatch& batch = l.batch[static_cast<std::size_t>(b)];
  batch.exchanged = count_pairs(l, b);
  const std::int64_t rows = note_runs(l, b, rank);
  require(batch.exchanged <= l.room,
          "ep_moe: expected at most {} rows for a rank, found {}: ranks have compiled for different numbers of tokens",
          l.room, batch.exchanged);
  ExpertRows& e = batch.experts;
  e.rows = first_rows(batch.sent, rows);
  if (l.types.x_scales) e.scales = TensorView(batch.sent_scales.data, DType::f32, {rows});
  e.gated = first_rows(e.gated, rows);
  if (l.types.rounds_hidden) e.hidden = first_rows(e.hidden, rows);
  if (l.types.hidden_scales) e.hidden_scales = first_rows(e.hidden_scales, rows);
  e.results = first_rows(e.results, rows);
}

void move_runs(const ExchangeLayout& l, int b, std::int64_t rank, const TensorView& from, const TensorView& to,
               RunOrder order, ThreadPool& pool) {
  const std::int64_t each = l.experts_each(), bytes = from.strides[0] * byte_size(from.dtype);
  const auto* runs = l.batch[static_cast<std::size_t>(b)].runs.as<const std::int32_t>();
  pool.parallel_for(l.experts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t run = begin; run < end; ++run) {
      const std::int64_t rows = l.count(b, run / each, rank * each + run % each), arrived = runs[2 * run],
                         sorted = runs[2 * run + 1];
      const bool sorts = order == RunOrder::to_sorted;
      std::memcpy(to.as<std::byte>() + (sorts ? sorted : arrived) * bytes,
                  from.as<const std::byte>() + (sorts ? arrived : sorted) * bytes,
                  static_cast<std::size_t>(rows * bytes));
    }
  });
}

}  // namespace cermet::cpu
