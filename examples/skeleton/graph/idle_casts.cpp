#include "graph/idle_casts.hpp"

#include "graph/memory.hpp"
#include "graph/rebuild.hpp"

namespace cermet {

Graph remove_idle_casts(const Graph& graph) {
  const std::vector<bool> overwritten = overwritten_values(graph);
  std::vector<bool> keep(graph.nodes().size(), true);
  std::vector<ValueId> replacement = no_replacement(graph);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.op != OpKind::cast || graph.type(node.inputs[0]) != graph.type(node.outputs[0])) continue;
    // A copy may be intended: if memory is updated in place later, the cast keeps the old state.
    const auto operand = static_cast<std::size_t>(node.inputs[0].index), result = static_cast<std::size_t>(node.outputs[0].index);
    if (overwritten[operand] || overwritten[result]) continue;
    keep[n] = false;
    replacement[result] = replacement[operand];  // operands come first, so chains of casts end at their first operand
  }
  return rebuild(graph, keep, replacement);
}

}  // namespace cermet
