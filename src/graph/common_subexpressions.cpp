#include "graph/common_subexpressions.hpp"

#include <algorithm>
#include <unordered_map>

#include "graph/editor.hpp"
#include "graph/memory.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

/// Text that two nodes share exactly when they compute the same, and in the same super-kernel.
std::string key_of(const Node& node) {
  std::string key = fmt::format("{} in {}", definition(node.op).name, node.super_kernel);
  for (const ValueId id : node.inputs) key += fmt::format(" {}", id.index);
  for (const auto& [name, value] : node.attributes) key += fmt::format(" {}={}", name, to_string(value));
  return key;
}

}  // namespace

Graph merge_common_subexpressions(const Graph& graph) {
  const std::vector<bool> overwritten = overwritten_values(graph);
  GraphEditor editor(graph);
  std::unordered_map<std::string, NodeId> seen;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const std::vector<ValueId>& results = graph.nodes()[n].outputs;
    if (std::ranges::any_of(results, [&](ValueId id) { return overwritten[id.at()]; })) continue;
    const auto [earlier, added] = seen.emplace(key_of(editor.node(static_cast<NodeId>(n))), static_cast<NodeId>(n));
    if (added) continue;
    const std::vector<ValueId>& kept = graph.nodes()[static_cast<std::size_t>(earlier->second)].outputs;
    for (std::size_t o = 0; o < results.size(); ++o) editor.replace_uses(results[o], kept[o]);
    editor.erase(static_cast<NodeId>(n));
  }
  return editor.finish();
}

}  // namespace cermet
