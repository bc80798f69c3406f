#include "graph/common_subexpressions.hpp"

#include <algorithm>
#include <unordered_map>

#include "graph/memory.hpp"
#include "graph/rebuild.hpp"

namespace cermet {
namespace {

/// Text that two nodes share exactly when they compute the same.
std::string key_of(const Node& node, const std::vector<ValueId>& replacement) {
  std::string key(definition(node.op).name);
  for (const ValueId id : node.inputs) key += fmt::format(" {}", id ? replacement[static_cast<std::size_t>(id.index)].index : -1);
  for (const auto& [name, value] : node.attributes) key += fmt::format(" {}={}", name, to_string(value));
  return key;
}

}  // namespace

Graph merge_common_subexpressions(const Graph& graph) {
  const std::vector<bool> overwritten = overwritten_values(graph);
  std::vector<ValueId> replacement = no_replacement(graph);
  std::vector<bool> keep(graph.nodes().size(), true);
  std::unordered_map<std::string, const Node*> seen;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) { return overwritten[static_cast<std::size_t>(id.index)]; })) continue;
    const auto [earlier, added] = seen.emplace(key_of(node, replacement), &node);
    if (added) continue;
    keep[n] = false;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) replacement[static_cast<std::size_t>(node.outputs[o].index)] = earlier->second->outputs[o];
  }
  return rebuild(graph, keep, replacement);
}

}  // namespace cermet
