// ep_moe with a rank's own tokens: rows go to the ranks of their experts and their results come back (GShard, Lepikhin et al. 2020: dispatch and combine), with
// as many rows as there are.
#include <cstring>

#include "base/checked.hpp"
#include "kernel/communicator.hpp"
#include "kernel/cpu/mixture/parts.hpp"
#include "kernel/kernel.hpp"
#include "op/infer.hpp"
#include "op/mixture.hpp"

namespace cermet::cpu {
namespace {

std::int64_t row_bytes(const TensorView& view) { return view.shape[1] * static_cast<std::int64_t>(size_of(view.dtype)); }

TensorView first_rows(TensorView view, std::int64_t rows) {
  view.shape[0] = rows;
  return view;
}

/// Sizes of a call, and its memory. Rows that come from other ranks have room for `room`.
struct ExchangeLayout {
  std::int64_t tokens, hidden, features, experts, ranks, k, room;
  TensorView logits, weights, ids, offsets, row_of;      ///< of the rank's own tokens
  TensorView counts, all_counts, dispatch, back_counts;  ///< i32: rows of each expert, [E], [R, E]; between ranks, [R, R], and the other way round
  TensorView own_offsets, runs;                          ///< of the rank's experts, [E/R + 1]; begins of the rows of each sender and expert, [R * E/R, 2]
  TensorView sorted, received, gated, results, returned;
  std::int64_t bytes = 0;

  ExchangeLayout(const Problem& p, std::int64_t token_count, std::byte* memory)
      : tokens(token_count),
        hidden(p.size(mixture_x, 1)),
        features(p.size(mixture_down, 2)),
        experts(p.size(mixture_router, 0)),
        ranks(p.attributes.integer("ranks")),
        k(p.attributes.integer("k")),
        room(p.size(mixture_x, 0) * k * ranks) {
    const auto place = [&](DType dtype, const Shape& shape) {
      const TensorView view(memory ? memory + bytes : nullptr, dtype, shape);
      bytes += round_up(shape.elements() * static_cast<std::int64_t>(size_of(dtype)), 64);
      return view;
    };
    const DType x = p.input(mixture_x).dtype;
    logits = place(DType::f32, {tokens, experts});
    weights = place(DType::f32, {tokens, k});
    ids = place(DType::i32, {tokens, k});
    offsets = place(DType::i32, {experts + 1});
    row_of = place(DType::i32, {tokens, k});
    counts = place(DType::i32, {experts});
    all_counts = place(DType::i32, {ranks * experts});
    dispatch = place(DType::i32, {ranks, ranks});
    back_counts = place(DType::i32, {ranks, ranks});
    own_offsets = place(DType::i32, {experts_each() + 1});
    runs = place(DType::i32, {experts, 2});
    sorted = place(x, {room, hidden});
    received = place(x, {room, hidden});
    gated = place(DType::f32, {room, 2 * features});
    results = place(DType::f32, {room, hidden});
    returned = place(DType::f32, {room, hidden});
  }

  std::int64_t experts_each() const { return experts / ranks; }
  /// Rows of expert `expert` that rank `from` has.
  std::int32_t count(std::int64_t from, std::int64_t expert) const { return all_counts.as<const std::int32_t>()[from * experts + expert]; }
};

struct Exchange {
  Problem problem;
  MixtureLaunchers launch;
  Activation activation;
  std::string group;

  void operator()(const LaunchArgs& args) const;

 private:
  void choose(const LaunchArgs& args, const ExchangeLayout& l) const;
  void run(const LaunchArgs& args, const ExchangeLayout& l, MixturePart part, std::initializer_list<TensorView> inputs, TensorView y) const {
    launch[part]({inputs, std::span(&y, 1), args.workspace + l.bytes, args.pool});
  }
};

/// Weights and experts of the rank's tokens, their rows sorted by expert, and how many there are.
void Exchange::choose(const LaunchArgs& args, const ExchangeLayout& l) const {
  const TensorView& x = args.inputs[mixture_x];
  run(args, l, part_router, {x, args.inputs[mixture_router], TensorView()}, l.logits);
  const TensorView gating[] = {l.logits, args.has(mixture_bias) ? args.inputs[mixture_bias] : TensorView()}, chosen[] = {l.weights, l.ids};
  launch[part_gating]({gating, chosen, args.workspace + l.bytes, args.pool});
  const TensorView pairs[] = {x, l.ids}, permuted[] = {first_rows(l.sorted, l.tokens * l.k), l.offsets, l.row_of};
  launch[part_permute]({pairs, permuted, args.workspace + l.bytes, args.pool});
  const auto* offsets = l.offsets.as<const std::int32_t>();
  for (std::int64_t e = 0; e < l.experts; ++e) l.counts.as<std::int32_t>()[e] = offsets[e + 1] - offsets[e];
}

/// Fills dispatch and its transpose; returns the most rows that any rank sends or receives.
std::int64_t plan_exchange(const ExchangeLayout& l) {
  std::int64_t most = 0;
  auto *to = l.dispatch.as<std::int32_t>(), *back = l.back_counts.as<std::int32_t>();
  for (std::int64_t i = 0; i < l.ranks; ++i) {
    std::int64_t sent = 0, received = 0;
    for (std::int64_t j = 0; j < l.ranks; ++j) {
      std::int32_t rows = 0, coming = 0;
      for (std::int64_t e = 0; e < l.experts_each(); ++e) {
        rows += l.count(i, j * l.experts_each() + e);
        coming += l.count(j, i * l.experts_each() + e);
      }
      to[i * l.ranks + j] = back[j * l.ranks + i] = rows;
      sent += rows;
      received += coming;
    }
    most = std::max({most, sent, received});
  }
  return most;
}

/// Received rows lie sender by sender, each sender's by expert: notes where each such run begins, and where among the rows sorted by expert.
std::int64_t plan_runs(const ExchangeLayout& l, std::int64_t rank) {
  auto *runs = l.runs.as<std::int32_t>(), *offsets = l.own_offsets.as<std::int32_t>();
  const std::int64_t each = l.experts_each();
  std::int32_t begin = 0, sorted = 0;
  for (std::int64_t from = 0; from < l.ranks; ++from)
    for (std::int64_t e = 0; e < each; ++e) {
      runs[2 * (from * each + e)] = begin;
      begin += l.count(from, rank * each + e);
    }
  for (std::int64_t e = 0; e < each; ++e) {
    offsets[e] = sorted;
    for (std::int64_t from = 0; from < l.ranks; ++from) {
      runs[2 * (from * each + e) + 1] = sorted;
      sorted += l.count(from, rank * each + e);
    }
  }
  offsets[each] = sorted;
  return sorted;
}

/// Copies every run from where `from_sorted` says to the other place.
void move_runs(const ExchangeLayout& l, std::int64_t rank, const TensorView& from, const TensorView& to, bool from_sorted, ThreadPool& pool) {
  const std::int64_t each = l.experts_each(), bytes = row_bytes(from);
  const auto* runs = l.runs.as<const std::int32_t>();
  pool.parallel_for(l.experts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t run = begin; run < end; ++run) {
      const std::int64_t rows = l.count(run / each, rank * each + run % each), arrived = runs[2 * run], sorted = runs[2 * run + 1];
      std::memcpy(to.as<std::byte>() + (from_sorted ? arrived : sorted) * bytes, from.as<const std::byte>() + (from_sorted ? sorted : arrived) * bytes,
                  static_cast<std::size_t>(rows * bytes));
    }
  });
}

void Exchange::operator()(const LaunchArgs& args) const {
  if (!args.communicator)
    fail(Status::invalid_argument, "ep_moe: group '{}': expected a communicator of {} ranks, found none: only graphs are given one", group,
         problem.attributes.integer("ranks"));
  Communicator& ranks = *args.communicator;
  const ExchangeLayout l(problem, args.inputs[mixture_x].shape[0], args.workspace);
  choose(args, l);
  ranks.all_gather(l.counts, l.all_counts);
  const std::int64_t exchanged = plan_exchange(l), rank = ranks.rank(), received = plan_runs(l, rank);
  require(exchanged <= l.room, "ep_moe: expected at most {} rows for a rank, found {}: ranks have compiled for different numbers of tokens", l.room, exchanged);
  const auto exchange = [&](const TensorView& x, const TensorView& y, const TensorView& counts) {
    if (exchanged > 0) ranks.run({Collective::all_to_all, Reduction::sum, 0, first_rows(x, exchanged), first_rows(y, exchanged), counts});
  };
  exchange(l.sorted, l.received, l.dispatch);
  const TensorView rows = first_rows(l.sorted, received), gated = first_rows(l.gated, received), results = first_rows(l.results, received);
  move_runs(l, rank, l.received, rows, false, *args.pool);
  run(args, l, part_gate_up, {rows, args.inputs[mixture_gate_up], l.own_offsets, TensorView()}, gated);
  gate_rows(gated, activation, *args.pool);
  const TensorView halves(gated.data, DType::f32, {received, l.features}, {2 * l.features, 1});
  run(args, l, part_down, {halves, args.inputs[mixture_down], l.own_offsets, TensorView()}, results);
  move_runs(l, rank, results, l.returned, true, *args.pool);
  exchange(l.returned, l.results, l.back_counts);
  run(args, l, part_unpermute,
      {first_rows(l.results, l.tokens * l.k), l.row_of, l.weights, args.has(mixture_residual) ? args.inputs[mixture_residual] : TensorView()}, args.outputs[0]);
  for (std::int64_t e = 0; e < l.experts; ++e) {
    std::int32_t load = 0;
    for (std::int64_t from = 0; from < l.ranks; ++from) load += l.count(from, e);
    args.outputs[1].as<std::int32_t>()[e] = load;
  }
  const Rows dispatch(args.outputs[2]);
  for (std::int64_t i = 0; i < l.ranks; ++i)
    std::memcpy(dispatch.row(i), l.dispatch.as<const std::int32_t>() + i * l.ranks, static_cast<std::size_t>(l.ranks) * sizeof(std::int32_t));
}

Decline exchange_declines(const Problem& p) {
  if (!takes_own_tokens(p) || p.attributes.integer("ranks") <= 1) return "takes the tokens of one of several ranks";
  return mixture_declines(p);
}

}  // namespace

extern const Kernel ranks_ep_moe{
    .name = "ranks.ep_moe",
    .op = OpKind::ep_moe,
    .summary = "one rank's tokens: ragged all_to_all to the ranks of their experts, grouped products of the rows that came, and back",
    .communicates = true,
    .declines = exchange_declines,
    .bind = [](const Problem& p) -> Launcher {
      return Exchange{p, bind_mixture_parts(p), activation_from_name(p.attributes.text("activation")), p.attributes.text("group")};
    },
    .weight_layout = mixture_weight_layout,
    .workspace = [](const Problem& p, int threads) { return ExchangeLayout(p, p.size(mixture_x, 0), nullptr).bytes + mixture_part_workspace(p, threads); },
};

}  // namespace cermet::cpu
