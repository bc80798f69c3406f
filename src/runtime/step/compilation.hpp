// Everything between a graph and its executable, and the steps that fill it: one file each, in the order of
// compile.cpp's list.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/rewrite/rule.hpp"
#include "runtime/compile.hpp"
#include "runtime/executable_state.hpp"
#include "select/select.hpp"

namespace cermet {

struct Compilation {
  using State = Executable::State;

  Device& device;
  WeightStore& weights;
  ThreadPool& pool;
  const CompileOptions& options;
  std::unique_ptr<State> state;
  std::vector<FusionGroup> groups;          ///< step i runs groups[i]
  std::vector<std::int32_t> views;          ///< nodes whose result shares operand 0's memory, rising; no step runs them
  std::vector<GraphUpdate> direct_updates;  ///< whose values are in their inputs' memory from the start
  std::vector<Choice> choices;              ///< by step: for the region of groups[i]
  std::vector<bool> walked;                 ///< by step: whether it is to share a launch on a GPU
  std::vector<double> walk_losses;  ///< by step: seconds that such a launch of its super-kernel was predicted to lose;
                                    ///< 0 where it was not looked at
  std::vector<RuleCount> rules;     ///< that were applied
  bool moved_channels = false;      ///< the graph keeps the channels of images last
  std::vector<std::vector<TensorView>> loaded;  ///< by step and operand: weights in the kernel's layout

  Compilation(Graph graph, Device& on, WeightStore& store, ThreadPool& threads, const CompileOptions& given);
  Executable finish() { return Executable(std::move(state)); }

  const Graph& graph() const { return state->graph; }
  std::string replace_graph(Graph smaller);
  /// The node that names a step.
  const Node& node_of(std::size_t step) const {
    return graph().nodes()[static_cast<std::size_t>(groups[step].anchor())];
  }
  /// Options of a node's super-kernel, where it is in one that a GPU can run as one launch; nothing otherwise.
  std::optional<SuperKernelOptions> options_of(const Node& node) const;
  const Region& region_of(std::size_t step) const { return groups[step].region; }
  const WeightLayout* layout_of(std::size_t step, std::size_t operand) const {
    return choices[step].kernel->weight_layout(region_of(step), operand);
  }
  std::int64_t workspace_of(std::size_t step) const {
    return choices[step].kernel->workspace(region_of(step), choices[step].config, pool.size());
  }
  /// Of all steps; none on a device without a target.
  std::vector<cuda::Program> programs() const;
  std::vector<cuda::Program> programs_of(std::size_t step) const {
    return choices[step].kernel->programs(region_of(step), choices[step].config);
  }
};

/// "512 B", "12.0 KiB", "3.1 MiB".
std::string size_text(std::int64_t bytes);

/// Each does one step and returns a note about what it did.
namespace step {

std::string verify(Compilation& c);
std::string mark_super_kernels(Compilation& c);
std::string remove_dead_code(Compilation& c);
std::string fold_constants(Compilation& c);
std::string merge_common_subexpressions(Compilation& c);
std::string rewrite(Compilation& c);
std::string choose_layouts(Compilation& c);
std::string rewrite_layouts(Compilation& c);
std::string split_gates(Compilation& c);
std::string split_sums(Compilation& c);
std::string fuse(Compilation& c);
std::string fold_views(Compilation& c);
std::string place_updates(Compilation& c);
std::string select_kernels(Compilation& c);
std::string compile_kernels(Compilation& c);
std::string load_weights(Compilation& c);
std::string plan_memory(Compilation& c);
std::string bind(Compilation& c);

}  // namespace step
}  // namespace cermet
