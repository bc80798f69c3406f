#include "kernel/rank_collective.hpp"

#include "kernel/communicator.hpp"

namespace cermet {
namespace {

/// What of a call is known before its operands are.
struct RankCall {
  Collective kind;
  Reduction reduction;
  int root;
  std::int64_t ranks;
  std::string group;

  void operator()(const LaunchArgs& args) const {
    if (!args.communicator)
      fail(Status::invalid_argument,
           "{}: group '{}': expected a communicator of {} ranks, found none: only graphs are given one", name_of(kind),
           group, ranks);
    CollectiveCall call{kind, reduction, root, args.inputs[0], args.outputs[0], {}};
    if (args.has(1)) call.counts = args.inputs[1];
    args.communicator->run(call, args.stream);
  }
};

}  // namespace

Decline one_process_declines(const Problem& problem) {
  if (problem.attributes.integer("ranks") > 1) return "has one rank's operand, so it needs a communicator";
  return std::nullopt;
}

Launcher stacked_launcher(Launcher stacked) {
  return [stacked = std::move(stacked)](const LaunchArgs& args) {
    const std::array<TensorView, 2> inputs{stacked_alone(args.inputs[0]), args.has(1) ? args.inputs[1] : TensorView()};
    const TensorView y = stacked_alone(args.outputs[0]);
    LaunchArgs with = args;
    with.inputs = inputs;
    with.outputs = std::span(&y, 1);
    stacked(with);
  };
}

Kernel rank_collective(Collective kind, OpKind op) {
  return {.name = fmt::format("ranks.{}", name_of(kind)),
          .op = op,
          .summary = "one rank's operand: a call of the communicator that the graph's user gives for its group",
          .communicates = true,
          .declines = [](const Problem& p) -> Decline {
            if (p.attributes.integer("ranks") <= 1) return "takes the operand of one of several ranks";
            if (p.has(1) && p.target) return "row counts for each pair of ranks are read by the host";
            return std::nullopt;
          },
          .bind = [kind](const Problem& p) -> Launcher {
            return RankCall{kind,
                            has_reduction(kind) ? reduction_from_name(p.attributes.text("reduction")) : Reduction::sum,
                            has_root(kind) ? static_cast<int>(p.attributes.integer("root")) : 0,
                            p.attributes.integer("ranks"), p.attributes.text("group")};
          }};
}

}  // namespace cermet
