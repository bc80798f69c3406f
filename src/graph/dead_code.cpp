#include "graph/dead_code.hpp"

#include <algorithm>

#include "graph/memory.hpp"
#include "graph/rebuild.hpp"

namespace cermet {

Graph remove_dead_code(const Graph& graph) {
  const auto at = [](ValueId id) { return static_cast<std::size_t>(id.index); };
  const std::vector<std::int32_t> root = memory_roots(graph);
  std::vector<bool> read(graph.values().size()), keep(graph.nodes().size());
  for (const GraphOutput& output : graph.outputs()) read[at(output.value)] = true;
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    for (std::size_t o = 0; o < node.outputs.size() && !keep[n]; ++o) {
      const ValueId shared = overwritten_by(node, o);
      const bool updates_input = shared && graph.values()[static_cast<std::size_t>(root[at(shared)])].kind == ValueKind::input;
      keep[n] = read[at(node.outputs[o])] || updates_input;
    }
    if (!keep[n]) continue;
    for (const ValueId id : node.inputs)
      if (id) read[at(id)] = true;
  }
  return rebuild(graph, keep, no_replacement(graph));
}

}  // namespace cermet
