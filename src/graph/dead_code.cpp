#include "graph/dead_code.hpp"

#include "graph/editor.hpp"
#include "graph/memory.hpp"

namespace cermet {

Graph remove_dead_code(const Graph& graph) {
  const std::vector<std::int32_t> root = memory_roots(graph);
  GraphEditor editor(graph);
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    bool keep = false;
    for (std::size_t o = 0; o < node.outputs.size() && !keep; ++o) {
      const ValueId id = node.outputs[o], shared = overwritten_by(node, o);
      const bool updates_input =
          shared && graph.values()[static_cast<std::size_t>(root[shared.at()])].kind == ValueKind::input;
      keep = updates_input || editor.is_output(id) || !editor.uses(id).empty();
    }
    if (!keep) editor.erase(static_cast<NodeId>(n));
  }
  return editor.finish();
}

}  // namespace cermet
