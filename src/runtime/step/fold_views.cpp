#include <algorithm>

#include "graph/memory.hpp"
#include "runtime/step/compilation.hpp"

namespace cermet {
namespace {

/// By value: whether it is a result of the graph, or an input's memory holds it in the end.
std::vector<bool> results_of(const Graph& graph) {
  std::vector<bool> is_result(graph.values().size());
  for (const ValueId id : graph.kept_values()) is_result[id.at()] = true;
  return is_result;
}

/// Whether all readers of a node's results accept these layouts. Results of the graph stay dense.
bool readers_accept(const Compilation& c, const std::vector<bool>& is_result, const Node& node,
                    const std::vector<ValueLayout>& layouts) {
  if (std::ranges::all_of(layouts, &ValueLayout::is_dense)) return true;
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    const ValueId id = node.outputs[o];
    if (is_result[static_cast<std::size_t>(id.index)]) return false;
    for (const Use& use : c.graph().uses(id)) {
      const Node& reader = c.graph().nodes()[static_cast<std::size_t>(use.node)];
      if (!trailing_dense(layouts[o], c.graph().type(id),
                          dense_dims_of(c.graph().problem_of(reader, c.options.maximum))))
        return false;
    }
  }
  return true;
}

}  // namespace

/// Intermediates are dense, so their views cost nothing; inputs may be bound to strided memory and are copied.
std::string step::fold_views(Compilation& c) {
  const std::vector<bool> is_result = results_of(c.graph());
  std::vector<ValueLayout>& all = c.state->memory.layouts;
  all.resize(c.graph().values().size());
  std::vector<bool> owned(c.graph().values().size());  // by value: its memory is in the arena
  std::vector<bool> is_fused(c.graph().nodes().size());
  for (const FusionGroup& group : c.groups)
    if (group.nodes.size() > 1)
      for (const std::int32_t n : group.nodes) is_fused[static_cast<std::size_t>(n)] = true;
  for (const Node& node : c.graph().nodes()) {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId shared = overwritten_by(node, o);
      owned[static_cast<std::size_t>(node.outputs[o].index)] = !shared || owned[static_cast<std::size_t>(shared.index)];
    }
    const auto n = &node - c.graph().nodes().data();
    if (is_fused[static_cast<std::size_t>(n)] || node.inputs.empty() || !node.inputs[0] ||
        !owned[static_cast<std::size_t>(node.inputs[0].index)])
      continue;
    const auto layouts = view_layouts(c.graph().problem_of(node, c.options.maximum),
                                      all[static_cast<std::size_t>(node.inputs[0].index)]);
    if (!layouts || !readers_accept(c, is_result, node, *layouts)) continue;
    c.views.push_back(static_cast<std::int32_t>(n));
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      all[static_cast<std::size_t>(node.outputs[o].index)] = (*layouts)[o];
  }
  std::erase_if(c.groups, [&](const FusionGroup& group) {
    return group.nodes.size() == 1 && std::ranges::binary_search(c.views, group.nodes[0]);
  });
  return fmt::format("{} views, {} launches left", c.views.size(), c.groups.size());
}

}  // namespace cermet
