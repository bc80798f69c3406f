#include "runtime/compile.hpp"

#include <algorithm>
#include <iterator>

#include "base/log.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "runtime/record.hpp"
#include "runtime/step/compilation.hpp"

namespace cermet {
namespace {

constexpr Pass<Compilation> list[] = {
    {"verify", "checks the graph against the rules", false, step::verify},
    {"mark-super-kernels", "marks the nodes that a user selects to become one launch", false, step::mark_super_kernels},
    {"dead-code", "removes nodes whose results are not used", true, step::remove_dead_code},
    {"fold-constants", "computes before the first run what depends on constants alone", true, step::fold_constants},
    {"common-subexpressions", "computes once what several nodes compute", true, step::merge_common_subexpressions},
    {"rewrite", "puts one operator in the place of several where a rule fits", true, step::rewrite},
    {"layouts", "keeps images with their channels last where convolutions are near", true, step::choose_layouts},
    {"rewrite-layouts", "cancels transpositions that channels in their new place leave", true, step::rewrite_layouts},
    {"split-gates",
     "lets the product before a gated activation that quantizes compute the activation, where a kernel does", true,
     step::split_gates},
    {"split-sums", "lets the product before a sum that is normalized compute the sum, where a kernel does", true,
     step::split_sums},
    {"fuse", "groups nodes that one kernel computes", false, step::fuse},
    {"fold-views", "lets reshapes and splits into columns share their operand's memory, so that nothing is copied",
     true, step::fold_views},
    {"place-updates", "lets steps write updated inputs, and copies the other updates at the end", false,
     step::place_updates},
    {"select-kernels", "chooses a kernel for every group", false, step::select_kernels},
    {"load-weights", "reads weights and packs them for their kernels", false, step::load_weights, PassKind::weights},
    {"compile-kernels", "compiles the programs of the chosen kernels, or finds them in the cache on disk", false,
     step::compile_kernels, PassKind::programs},
    {"plan-memory", "gives every intermediate value a place in one arena", false, step::plan_memory},
    {"bind", "resolves operands and attributes of every launch", false, step::bind},
};

/// Steps that know neither weights nor programs: up to the choice of kernels.
constexpr std::size_t choosing_steps =
    std::ranges::find(list, &step::select_kernels, &Pass<Compilation>::run) - std::begin(list) + 1;

}  // namespace

struct StartedCompile::State {
  CompileOptions options;
  Compilation compilation;
  std::size_t nodes_before;
  std::vector<CompileStep> report;

  State(Graph graph, Device& device, WeightStore& weights, ThreadPool& pool, CompileOptions given)
      : options(std::move(given)),
        compilation(std::move(graph), device, weights, pool, options),
        nodes_before(compilation.graph().nodes().size()) {}

  void run(std::size_t first, std::size_t count) {
    PassOptions passes{options.skip, options.dump_after, {}, {}};
    passes.verify_after = [&](std::string_view step) {
      if (const auto broken = find_violation(compilation.graph()))
        fail(Status::internal, "compile step '{}' broke the graph: {}", step, *broken);
    };
    passes.dump = [&](std::string_view step) { log().info("graph after {}:\n{}", step, to_text(compilation.graph())); };
    std::ranges::move(run_passes(std::span<const Pass<Compilation>>(list), compilation, passes, first, count),
                      std::back_inserter(report));
  }
};

StartedCompile::StartedCompile(Graph graph, Device& device, WeightStore& weights, ThreadPool& pool,
                               CompileOptions options)
    : state_(std::make_unique<State>(std::move(graph), device, weights, pool, std::move(options))) {
  state_->run(0, choosing_steps);
}
StartedCompile::StartedCompile(StartedCompile&&) noexcept = default;
StartedCompile::~StartedCompile() = default;

std::vector<cuda::Program> StartedCompile::programs() const { return state_->compilation.programs(); }

Executable StartedCompile::finish(std::vector<CompileStep>* report) {
  state_->run(choosing_steps, std::dynamic_extent);
  const FusionOptions& fusion = state_->options.fusion;
  if (fusion.records) fusion.records->push_back(record_of(state_->compilation, state_->nodes_before, state_->report));
  if (report) std::ranges::move(state_->report, std::back_inserter(*report));
  return state_->compilation.finish();
}

std::vector<CompileStepInfo> compile_steps() {
  std::vector<CompileStepInfo> steps;
  for (const auto& step : list) steps.push_back({step.name, step.summary, step.optional});
  return steps;
}

Executable compile(Graph graph, Device& device, WeightStore& weights, ThreadPool& pool, const CompileOptions& options,
                   std::vector<CompileStep>* report) {
  return StartedCompile(std::move(graph), device, weights, pool, options).finish(report);
}

}  // namespace cermet
