#include "runtime/step/compilation.hpp"

#include <utility>

namespace cermet {

std::string size_text(std::int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const bool small = bytes < 1 << 20;
  return fmt::format("{:.1f} {}", static_cast<double>(bytes) / (small ? 1 << 10 : 1 << 20), small ? "KiB" : "MiB");
}

Compilation::Compilation(Graph graph, Device& on, WeightStore& store, ThreadPool& threads, const CompileOptions& given)
    : device(on), weights(store), pool(threads), options(given), state(std::make_unique<State>()) {
  state->graph = std::move(graph);
}

std::string Compilation::replace_graph(Graph smaller) {
  std::string note = fmt::format("{} of {} nodes left out", graph().nodes().size() - smaller.nodes().size(), graph().nodes().size());
  state->graph = std::move(smaller);
  return note;
}

Problem Compilation::problem_of(const Node& node, const Node* prologue) const {
  Problem problem = graph().problem_of(node, options.maximum);
  problem.target = device.target();
  if (prologue) problem.prologue = std::make_shared<const Problem>(problem_of(*prologue, nullptr));
  return problem;
}

std::vector<ValueId> Compilation::inputs_of(std::size_t step) const {
  const Node* prologue = prologue_of(step);
  if (!prologue) return node_of(step).inputs;
  std::vector<ValueId> ids = prologue->inputs;
  ids.resize(definition(prologue->op).inputs.size());  // optional operands at the end may have been left out
  ids.insert(ids.end(), node_of(step).inputs.begin() + 1, node_of(step).inputs.end());
  return ids;
}

std::vector<ValueId> Compilation::outputs_of(std::size_t step) const {
  std::vector<ValueId> ids = node_of(step).outputs;
  if (const Node* prologue = prologue_of(step)) ids.insert(ids.end(), prologue->outputs.begin() + 1, prologue->outputs.end());
  return ids;
}

}  // namespace cermet
