#include "graph/memory.hpp"

#include <numeric>

#include "op/schema/operator.hpp"

namespace cermet {
namespace {

std::size_t at(ValueId id) { return static_cast<std::size_t>(id.index); }

}  // namespace

ValueId overwritten_by(const Node& node, std::size_t output) {
  const std::vector<int>& aliases = definition(node.op).aliases;
  if (output >= aliases.size() || aliases[output] < 0) return {};
  const auto input = static_cast<std::size_t>(aliases[output]);
  return input < node.inputs.size() ? node.inputs[input] : ValueId{};
}

std::vector<std::int32_t> memory_roots(const Graph& graph, FunctionRef<bool(std::int32_t node)> is_view) {
  std::vector<std::int32_t> root(graph.values().size());
  std::iota(root.begin(), root.end(), 0);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    const bool view = is_view(static_cast<std::int32_t>(n));
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (const ValueId shared = view ? node.inputs.at(0) : overwritten_by(node, o))
        root[at(node.outputs[o])] = root[at(shared)];
  }
  return root;
}

std::vector<std::int32_t> memory_roots(const Graph& graph) {
  return memory_roots(
      graph, [&](std::int32_t n) { return definition(graph.nodes()[static_cast<std::size_t>(n)].op).is_view; });
}

std::vector<bool> overwritten_values(const Graph& graph) {
  const std::vector<std::int32_t> root = memory_roots(graph);
  std::vector<bool> roots(root.size()), values(root.size());
  for (const Node& node : graph.nodes())
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (const ValueId shared = overwritten_by(node, o)) roots[static_cast<std::size_t>(root[at(shared)])] = true;
  for (std::size_t v = 0; v < root.size(); ++v) values[v] = roots[static_cast<std::size_t>(root[v])];
  return values;
}

}  // namespace cermet
