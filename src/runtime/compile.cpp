#include "runtime/compile.hpp"

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
    {"common-subexpressions", "computes once what several nodes compute", true, step::merge_common_subexpressions},
    {"rewrite", "puts one operator in the place of several where a rule fits", true, step::rewrite},
    {"layouts", "keeps images with their channels last where convolutions are near", true, step::choose_layouts},
    {"rewrite-layouts", "cancels transpositions that channels in their new place leave", true, step::rewrite_layouts},
    {"split-gates", "lets the product before a gated activation that quantizes compute the activation, where a kernel does", true, step::split_gates},
    {"fuse", "groups nodes that one kernel computes", false, step::fuse},
    {"fold-views", "lets reshapes and splits into columns share their operand's memory, so that nothing is copied", true, step::fold_views},
    {"select-kernels", "chooses a kernel for every group", false, step::select_kernels},
    {"compile-kernels", "compiles the programs of the chosen kernels, or finds them in the cache on disk", false, step::compile_kernels},
    {"load-weights", "reads weights and packs them for their kernels", false, step::load_weights},
    {"plan-memory", "gives every intermediate value a place in one arena", false, step::plan_memory},
    {"bind", "resolves operands and attributes of every launch", false, step::bind},
};

}  // namespace

std::vector<CompileStepInfo> compile_steps() {
  std::vector<CompileStepInfo> steps;
  for (const auto& step : list) steps.push_back({step.name, step.summary, step.optional});
  return steps;
}

Executable compile(Graph graph, Device& device, WeightStore& weights, ThreadPool& pool, const CompileOptions& options, std::vector<CompileStep>* report) {
  const std::size_t nodes_before = graph.nodes().size();
  Compilation compilation(std::move(graph), device, weights, pool, options);
  PassOptions passes{options.skip, options.dump_after, {}, {}};
  passes.verify_after = [&](std::string_view step) {
    if (const auto broken = find_violation(compilation.graph())) fail(Status::internal, "compile step '{}' broke the graph: {}", step, *broken);
  };
  passes.dump = [&](std::string_view step) { log().info("graph after {}:\n{}", step, to_text(compilation.graph())); };
  std::vector<PassReport> reports = run_passes(std::span<const Pass<Compilation>>(list), compilation, passes);
  if (options.fusion.records) options.fusion.records->push_back(record_of(compilation, nodes_before, reports));
  if (report) *report = std::move(reports);
  return compilation.finish();
}

}  // namespace cermet
