#include "graph/idle_casts.hpp"

#include "graph/editor.hpp"
#include "graph/memory.hpp"

namespace cermet {

Graph remove_idle_casts(const Graph& graph) {
  const std::vector<bool> overwritten = overwritten_values(graph);
  GraphEditor editor(graph);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.op != OpKind::cast || graph.type(node.inputs[0]) != graph.type(node.outputs[0])) continue;
    // A copy may be intended: if memory is updated in place later, the cast keeps the old state.
    if (overwritten[node.inputs[0].at()] || overwritten[node.outputs[0].at()]) continue;
    const auto cast = static_cast<NodeId>(n);
    editor.replace_uses(node.outputs[0],
                        editor.node(cast).inputs[0]);  // what it reads now: the cast before it may be gone
    editor.erase(cast);
  }
  return editor.finish();
}

}  // namespace cermet
