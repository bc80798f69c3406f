#include <algorithm>

#include "graph/memory.hpp"
#include "runtime/step/compilation.hpp"

namespace cermet {
namespace {

/// By value: the nodes that read it, and whether it is a result of the graph.
struct Uses {
  std::vector<std::vector<const Node*>> readers;
  std::vector<bool> is_result;

  explicit Uses(const Graph& graph) : readers(graph.values().size()), is_result(graph.values().size()) {
    for (const Node& node : graph.nodes())
      for (const ValueId id : node.inputs)
        if (id) readers[static_cast<std::size_t>(id.index)].push_back(&node);
    for (const GraphOutput& output : graph.outputs()) is_result[static_cast<std::size_t>(output.value.index)] = true;
  }
};

/// Whether all readers of a node's results accept these layouts. Results of the graph stay dense.
bool readers_accept(const Compilation& c, const Uses& uses, const Node& node, const std::vector<ValueLayout>& layouts) {
  if (std::ranges::all_of(layouts, &ValueLayout::is_dense)) return true;
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const ValueId id = node.outputs[o];
    if (uses.is_result[static_cast<std::size_t>(id.index)]) return false;
    for (const Node* reader : uses.readers[static_cast<std::size_t>(id.index)])
      if (!trailing_dense(layouts[o], c.graph().type(id), dense_dims_of(c.graph().problem_of(*reader, c.options.maximum)))) return false;
  }
  return true;
}

}  // namespace

/// Intermediates are dense, so their views cost nothing; inputs may be bound to strided memory and are copied.
std::string step::fold_views(Compilation& c) {
  const Uses uses(c.graph());
  std::vector<ValueLayout>& all = c.state->layouts;
  all.resize(c.graph().values().size());
  std::vector<bool> owned(c.graph().values().size());  // by value: its memory is in the arena
  for (const Node& node : c.graph().nodes()) {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId shared = overwritten_by(node, o);
      owned[static_cast<std::size_t>(node.outputs[o].index)] = !shared || owned[static_cast<std::size_t>(shared.index)];
    }
    if (node.inputs.empty() || !node.inputs[0] || !owned[static_cast<std::size_t>(node.inputs[0].index)]) continue;
    const auto layouts = view_layouts(c.graph().problem_of(node, c.options.maximum), all[static_cast<std::size_t>(node.inputs[0].index)]);
    if (!layouts || !readers_accept(c, uses, node, *layouts)) continue;
    c.views.push_back(static_cast<std::int32_t>(&node - c.graph().nodes().data()));
    for (std::size_t o = 0; o < node.outputs.size(); ++o) all[static_cast<std::size_t>(node.outputs[o].index)] = (*layouts)[o];
  }
  std::erase_if(c.groups, [&](const FusionGroup& group) { return group.nodes.size() == 1 && std::ranges::binary_search(c.views, group.nodes[0]); });
  return fmt::format("{} views, {} launches left", c.views.size(), c.groups.size());
}

}  // namespace cermet
