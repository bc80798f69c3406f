#include "fuse/prologue.hpp"

#include <algorithm>

namespace cermet {
namespace {

bool is_product(OpKind op) { return op == OpKind::linear || op == OpKind::dual_linear; }
bool is_prologue(OpKind op) { return op == OpKind::rms_norm || op == OpKind::add_rms_norm; }

std::int32_t index_of(const Graph& graph, const Node& node) { return static_cast<std::int32_t>(&node - graph.nodes().data()); }

/// Whether results of `first` are read by `product` as operand 0 alone, and the others only after it.
bool only_feeds(const Graph& graph, const Node& first, const Node& product) {
  const ValueId passed = first.outputs[0];
  if (product.inputs[0] != passed || std::ranges::count(product.inputs, passed) != 1) return false;
  for (const GraphOutput& output : graph.outputs())
    if (output.value == passed) return false;
  for (const Node& reader : graph.nodes()) {
    if (&reader == &product) continue;
    for (std::size_t o = 0; o < first.outputs.size(); ++o)
      if (std::ranges::find(reader.inputs, first.outputs[o]) != reader.inputs.end() && (o == 0 || index_of(graph, reader) < index_of(graph, product)))
        return false;
  }
  return true;
}

/// The node that makes a value; null for inputs and constants.
const Node* maker_of(const Graph& graph, ValueId id) {
  for (const Node& node : graph.nodes())
    if (std::ranges::find(node.outputs, id) != node.outputs.end()) return &node;
  return nullptr;
}

}  // namespace

std::vector<FusionGroup> fuse_prologues(const Graph& graph, std::vector<FusionGroup> groups,
                                        FunctionRef<bool(const Node& first, const Node& product)> accepts) {
  std::vector<bool> joined(graph.nodes().size());
  for (FusionGroup& group : groups) {
    if (group.nodes.size() != 1) continue;
    const Node& product = graph.nodes()[static_cast<std::size_t>(group.nodes[0])];
    if (!is_product(product.op)) continue;
    const Node* first = maker_of(graph, product.inputs[0]);
    if (!first || !is_prologue(first->op) || !only_feeds(graph, *first, product) || !accepts(*first, product)) continue;
    joined[static_cast<std::size_t>(index_of(graph, *first))] = true;
    group.nodes.insert(group.nodes.begin(), index_of(graph, *first));
  }
  std::erase_if(groups, [&](const FusionGroup& group) { return group.nodes.size() == 1 && joined[static_cast<std::size_t>(group.nodes[0])]; });
  return groups;
}

}  // namespace cermet
