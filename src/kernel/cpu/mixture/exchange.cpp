// ep_moe with a rank's own tokens: rows go to the ranks of their experts and their results come back (GShard, Lepikhin
// et al. 2020: dispatch and combine), with as many rows as there are. With two batches, one is on its way while the
// other is computed (as in DeepSeek-V3's report, 2024, section 3.2).
#include <cstring>
#include <utility>

#include "kernel/communicator.hpp"
#include "kernel/cpu/mixture/exchange_plan.hpp"
#include "kernel/cpu/mixture/side_thread.hpp"
#include "kernel/kernel.hpp"
#include "op/mixture.hpp"
#include "op/schema/infer.hpp"

namespace cermet::cpu {
namespace {

/// Rows [begin, begin + count) of a matrix.
TensorView rows_of(TensorView view, std::int64_t begin, std::int64_t count) {
  if (!view.present) return view;
  view.data = view.as<std::byte>() + begin * view.strides[0] * byte_size(view.dtype);
  return first_rows(view, count);
}

struct Exchange {
  Problem problem;
  MixtureLaunchers launch;
  ExpertTypes types;
  Activation activation;
  std::string group;

  void operator()(const LaunchArgs& args) const;
};

/// One call of it.
class ExchangeCall {
 public:
  ExchangeCall(const Exchange& kernel, const LaunchArgs& args)
      : kernel_(kernel),
        args_(args),
        ranks_(*args.communicator),
        l_(kernel.problem, kernel.types, args.inputs[mixture_x].shape[0], args.workspace) {}

  void run() {
    choose();
    for (int b = 0; b < l_.batches; ++b) sort(b);
    ranks_.all_gather(l_.counts, l_.all_counts);
    for (int b = 0; b < l_.batches; ++b) plan_exchange(l_, b, ranks_.rank());
    l_.batches == 1 ? run_in_turn() : run_overlapped();
    for (int b = 0; b < l_.batches; ++b) combine(b);
    report();
  }

 private:
  ExchangeBatch& batch(int b) { return l_.batch[static_cast<std::size_t>(b)]; }
  std::byte* part_workspace() const { return args_.workspace + l_.bytes; }
  TensorView optional(std::size_t operand) const { return args_.has(operand) ? args_.inputs[operand] : TensorView(); }
  void part(std::size_t which, std::initializer_list<TensorView> inputs,
            std::initializer_list<TensorView> outputs) const {
    kernel_.launch[which]({inputs, outputs, part_workspace(), args_.pool});
  }

  /// Weights and experts of the rank's tokens.
  void choose() const {
    const TensorView& x = args_.inputs[mixture_x];
    part(part_router, {x, args_.inputs[mixture_router], TensorView()}, {l_.logits});
    part(part_gating, {l_.logits, optional(mixture_bias)}, {l_.weights, l_.ids});
    if (l_.types.quantizes_x) quantize_tokens(args_, kernel_.launch, l_.quantized, l_.scales, part_workspace());
  }

  /// The rows of a batch by expert, and how many each has.
  void sort(int b) {
    ExchangeBatch& own = batch(b);
    own.row_of = first_rows(own.row_of, own.tokens);
    const TensorView tokens =
        rows_of(l_.types.quantizes_x ? l_.quantized : args_.inputs[mixture_x], own.begin, own.tokens);
    part(part_permute, {tokens, rows_of(l_.ids, own.begin, own.tokens)},
         {first_rows(own.sent, own.tokens * l_.k), own.offsets, own.row_of});
    if (l_.types.x_scales) permute_scales(rows_of(l_.scales, own.begin, own.tokens), own.row_of, own.sent_scales);
    const auto* offsets = own.offsets.as<const std::int32_t>();
    for (std::int64_t e = 0; e < l_.experts; ++e)
      l_.counts.as<std::int32_t>()[b * l_.experts + e] = offsets[e + 1] - offsets[e];
  }

  void exchange(int b, const TensorView& x, const TensorView& y, const TensorView& counts) {
    const std::int64_t rows = batch(b).exchanged;
    if (rows > 0)
      ranks_.run({Collective::all_to_all, Reduction::sum, 0, first_rows(x, rows), first_rows(y, rows), counts});
  }
  void send_out(int b) {
    ExchangeBatch& own = batch(b);
    exchange(b, own.sent, own.received, own.dispatch);
    if (l_.types.x_scales) exchange(b, own.sent_scales, own.received_scales, own.dispatch);
  }
  void send_back(int b) { exchange(b, batch(b).returned, batch(b).experts.results, batch(b).back_counts); }

  /// The rank's experts on the rows that came.
  void compute(int b) {
    ExchangeBatch& own = batch(b);
    move_runs(l_, b, ranks_.rank(), own.received, own.experts.rows, RunOrder::to_sorted, *args_.pool);
    if (l_.types.x_scales)
      move_runs(l_, b, ranks_.rank(), own.received_scales, own.experts.scales, RunOrder::to_sorted, *args_.pool);
    run_experts(args_, kernel_.launch, l_.types, kernel_.activation, own.experts, part_workspace());
    move_runs(l_, b, ranks_.rank(), own.experts.results, own.returned, RunOrder::to_arrival, *args_.pool);
  }

  void run_in_turn() {
    send_out(0);
    compute(0);
    send_back(0);
  }

  /// The side thread makes all calls of other ranks, in the same order everywhere; this one computes what has come.
  void run_overlapped() {
    Milestones received, computed;
    const auto communicate = [&] {
      try {
        for (int b = 0; b < l_.batches; ++b) send_out(b), received.reach(b + 1);
        for (int b = 0; b < l_.batches && computed.await(b + 1); ++b) send_back(b);
      } catch (...) {
        received.give_up();
        throw;
      }
    };
    SideThread& beside = side_thread();
    beside.start(communicate);
    try {
      for (int b = 0; b < l_.batches && received.await(b + 1); ++b) compute(b), computed.reach(b + 1);
    } catch (...) {
      computed.give_up();
      beside.finish();
      throw;
    }
    if (const std::exception_ptr error = beside.finish()) std::rethrow_exception(error);
  }

  /// The weighted sums of the results that came back.
  void combine(int b) {
    const ExchangeBatch& own = batch(b);
    part(part_unpermute,
         {first_rows(own.experts.results, own.tokens * l_.k), own.row_of, rows_of(l_.weights, own.begin, own.tokens),
          rows_of(optional(mixture_residual), own.begin, own.tokens)},
         {rows_of(args_.outputs[0], own.begin, own.tokens)});
  }

  void report() const {
    for (std::int64_t e = 0; e < l_.experts; ++e) {
      std::int32_t load = 0;
      for (int b = 0; b < l_.batches; ++b)
        for (std::int64_t from = 0; from < l_.ranks; ++from) load += l_.count(b, from, e);
      args_.outputs[1].as<std::int32_t>()[e] = load;
    }
    const Rows dispatch(args_.outputs[2]);
    for (std::int64_t i = 0; i < l_.ranks; ++i)
      for (std::int64_t j = 0; j < l_.ranks; ++j) {
        std::int32_t rows = 0;
        for (int b = 0; b < l_.batches; ++b)
          rows += l_.batch[static_cast<std::size_t>(b)].dispatch.as<const std::int32_t>()[i * l_.ranks + j];
        reinterpret_cast<std::int32_t*>(dispatch.row(i))[j] = rows;
      }
  }

  const Exchange& kernel_;
  const LaunchArgs& args_;
  Communicator& ranks_;
  ExchangeLayout l_;
};

void Exchange::operator()(const LaunchArgs& args) const {
  if (!args.communicator)
    fail(Status::invalid_argument,
         "ep_moe: group '{}': expected a communicator of {} ranks, found none: only graphs are given one", group,
         problem.attributes.integer("ranks"));
  ExchangeCall(*this, args).run();
}

Decline exchange_declines(const Problem& p) {
  if (!takes_own_tokens(p) || p.attributes.integer("ranks") <= 1) return "takes the tokens of one of several ranks";
  return mixture_declines(p);
}

}  // namespace

extern const Kernel ranks_ep_moe{
    .name = "ranks.ep_moe",
    .op = OpKind::ep_moe,
    .summary =
        "one rank's tokens: ragged all_to_all to the ranks of their experts, grouped products of the rows that came, "
        "and back",
    .communicates = true,
    .declines = exchange_declines,
    .bind = [](const Problem& p) -> Launcher {
      return Exchange{p, bind_mixture_parts(p), expert_types(p), activation_from_name(p.attributes.text("activation")),
                      p.attributes.text("group")};
    },
    .weight_layout = mixture_weight_layout,
    .workspace =
        [](const Problem& p, int threads) {
          return ExchangeLayout(p, expert_types(p), p.size(mixture_x, 0), nullptr).bytes +
                 mixture_part_workspace(p, threads);
        },
};

}  // namespace cermet::cpu
