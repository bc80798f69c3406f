#include "graph/rebuild.hpp"

namespace cermet {

std::vector<ValueId> no_replacement(const Graph& graph) {
  std::vector<ValueId> ids;
  for (std::size_t v = 0; v < graph.values().size(); ++v) ids.push_back({static_cast<std::int32_t>(v)});
  return ids;
}

Graph rebuild(const Graph& graph, const std::vector<bool>& keep, const std::vector<ValueId>& replacement) {
  const auto at = [](ValueId id) { return static_cast<std::size_t>(id.index); };
  std::vector<Node> nodes;
  std::vector<bool> stays(graph.values().size());
  std::vector<std::int32_t> producer(graph.values().size(), -1);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    if (!keep[n]) continue;
    Node node = graph.nodes()[n];
    for (ValueId& id : node.inputs) {
      if (!id) continue;
      id = replacement[at(id)];
      stays[at(id)] = true;
    }
    for (const ValueId id : node.outputs) {
      stays[at(id)] = true;
      producer[at(id)] = static_cast<std::int32_t>(nodes.size());
    }
    nodes.push_back(std::move(node));
  }
  std::vector<GraphOutput> outputs = graph.outputs();
  for (GraphOutput& output : outputs) {
    output.value = replacement[at(output.value)];
    stays[at(output.value)] = true;
  }

  std::vector<Value> values;
  std::vector<ValueId> moved(graph.values().size());
  for (std::size_t v = 0; v < graph.values().size(); ++v) {
    if (!stays[v] && graph.values()[v].kind != ValueKind::input) continue;
    moved[v] = {static_cast<std::int32_t>(values.size())};
    values.push_back(graph.values()[v]);
    values.back().producer = producer[v];
  }
  for (Node& node : nodes) {
    for (ValueId& id : node.inputs)
      if (id) id = moved[at(id)];
    for (ValueId& id : node.outputs) id = moved[at(id)];
  }
  for (GraphOutput& output : outputs) output.value = moved[at(output.value)];
  return Graph::from_parts(graph.name, std::move(values), std::move(nodes), std::move(outputs));
}

}  // namespace cermet
