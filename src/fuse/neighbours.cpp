#include "fuse/neighbours.hpp"

#include <algorithm>

namespace cermet {
namespace {

const Node& node_of(const Graph& graph, std::int32_t n) { return graph.nodes()[static_cast<std::size_t>(n)]; }

}  // namespace

std::vector<std::int32_t> makers_of(const Graph& graph, std::int32_t node) {
  std::vector<std::int32_t> makers;
  for (const ValueId id : node_of(graph, node).inputs)
    if (id && graph.value(id).producer >= 0) makers.insert(makers.begin(), graph.value(id).producer);
  return makers;
}

bool share_super_kernel(const Graph& graph, std::int32_t a, std::int32_t b) {
  return node_of(graph, a).super_kernel == node_of(graph, b).super_kernel;
}

std::int32_t first_reader(const Graph& graph, const std::vector<std::int32_t>& nodes) {
  std::int32_t first = -1;
  for (const std::int32_t n : nodes)
    for (const ValueId id : node_of(graph, n).outputs)
      for (const Use& use : graph.uses(id))
        if (!std::ranges::binary_search(nodes, use.node) && (first < 0 || use.node < first)) first = use.node;
  return first;
}

bool shares_memory(const Graph& graph, std::int32_t node, const std::vector<std::int32_t>& group) {
  const auto op = [&](std::int32_t n) { return graph.nodes()[static_cast<std::size_t>(n)].op; };
  while (op(node) == OpKind::reshape) {
    node = graph.value(graph.nodes()[static_cast<std::size_t>(node)].inputs[0]).producer;
    if (node < 0 || std::ranges::binary_search(group, node)) return false;
    if (op(node) != OpKind::reshape) return op(node) != OpKind::split;
  }
  return false;
}

}  // namespace cermet
