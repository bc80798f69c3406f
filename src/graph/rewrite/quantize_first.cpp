#include <algorithm>

#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

/// Whether the scales and offsets of a node, every operand but its first, are single values.
bool has_single_parameters(const GraphEditor& editor, const Node& node) {
  return std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                     [&](ValueId id) { return !id || product(editor.value(id).type.dims) == Dim(1); });
}

/// The node that makes a value which only one operand reads; no_node otherwise.
NodeId only_for_one(const GraphEditor& editor, ValueId id) {
  return editor.uses(id).size() == 1 && !editor.is_output(id) ? editor.producer(id) : no_node;
}

}  // namespace

/// Values are rounded to a quantized format where they are made, not behind what moves them, so that the kernel that
/// makes them can do it.
bool quantize_before_movement(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node dequantize = editor.node(anchor);
  const NodeId coding = only_for_one(editor, dequantize.inputs[0]);
  if (coding == no_node || editor.node(coding).op != OpKind::quantize) return false;
  const Node quantize = editor.node(coding);
  const NodeId moving = only_for_one(editor, quantize.inputs[0]);
  if (moving == no_node || (editor.node(moving).op != OpKind::reshape && editor.node(moving).op != OpKind::transpose))
    return false;
  const Node movement = editor.node(moving);
  const ValueId x = movement.inputs[0];
  if (only_for_one(editor, x) == no_node || editor.value(x).type.dims.empty()) return false;
  const std::string& granularity = dequantize.attributes.text("granularity");
  if (granularity != "tensor" && granularity != "broadcast") return false;
  if (!has_single_parameters(editor, quantize) || !has_single_parameters(editor, dequantize)) return false;
  // A scale of more dimensions than x would not broadcast to it.
  const auto rank = static_cast<std::size_t>(editor.value(x).type.rank());
  for (const Node* node : {&quantize, &dequantize})
    for (std::size_t i = 1; i < node->inputs.size(); ++i)
      if (node->inputs[i] && editor.value(node->inputs[i]).type.dims.size() > rank) return false;
  const auto again = [&](const Node& node, ValueId first) {
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = first;
    return editor.insert_before(anchor, node.op, std::move(inputs), node.attributes, node.scope)[0];
  };
  const ValueId y = dequantize.outputs[0], made = again(movement, again(dequantize, again(quantize, x)));
  const std::string name = editor.value(y).name;
  const NodeId nodes[] = {moving, coding, anchor};
  const std::pair<ValueId, ValueId> results[] = {{y, made}};
  editor.replace(nodes, results);
  editor.rename(made, name);
  return true;
}

}  // namespace cermet
