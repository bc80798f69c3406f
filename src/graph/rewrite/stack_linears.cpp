#include <algorithm>

#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

constexpr std::size_t x_operand = 0, weight_operand = 1, bias_operand = 2;

/// A constant that nothing else reads: others would be held twice, by themselves and in the stack.
bool is_own_constant(const GraphEditor& editor, const Node& node, std::size_t operand) {
  const ValueId id = node.inputs[operand];
  return id && editor.value(id).kind == ValueKind::constant && editor.uses(id).size() == 1 && !editor.is_output(id);
}

/// Whether two products may be one: the same rows, attributes and element types, weights that are constants of their own, and
/// constant biases.
bool fit_together(const GraphEditor& editor, const Node& a, const Node& b) {
  if (b.op != a.op || b.inputs[x_operand] != a.inputs[x_operand] || b.attributes != a.attributes) return false;
  if (!is_own_constant(editor, a, weight_operand) || !is_own_constant(editor, b, weight_operand)) return false;
  if (editor.value(a.inputs[weight_operand]).type.dtype != editor.value(b.inputs[weight_operand]).type.dtype) return false;
  const ValueId left = a.inputs[bias_operand], right = b.inputs[bias_operand];
  if (!left && !right) return true;
  // A vector may be held twice: exporters write equal biases once.
  const auto is_constant = [&](ValueId id) { return id && editor.value(id).kind == ValueKind::constant; };
  return is_constant(left) && is_constant(right) && editor.value(left).type.dtype == editor.value(right).type.dtype;
}

ValueId stacked(GraphEditor& editor, const std::vector<NodeId>& nodes, std::size_t operand) {
  std::vector<ValueId> parts;
  for (const NodeId n : nodes) parts.push_back(editor.node(n).inputs[operand]);
  if (!parts.front()) return {};
  const std::string name = editor.value(parts.front()).name + ".stacked";
  return editor.add_constant(name, ConstantExpression{OpKind::concat, std::move(parts), {{"axis", std::int64_t{0}}}, 0});
}

}  // namespace

/// The anchor is the first of the products in the order of the graph, so that a group is found once and whole.
bool stack_linears(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node first = editor.node(anchor);
  std::vector<NodeId> nodes;
  for (const Use use : editor.uses(first.inputs[x_operand]))
    if (use.operand == static_cast<std::int32_t>(x_operand) && fit_together(editor, first, editor.node(use.node))) nodes.push_back(use.node);
  std::ranges::sort(nodes);
  if (nodes.size() < 2 || nodes.front() != anchor) return false;
  nodes.resize(std::min(nodes.size(), static_cast<std::size_t>(max_variadic)));
  std::vector<ValueId> inputs{first.inputs[x_operand], stacked(editor, nodes, weight_operand), stacked(editor, nodes, bias_operand)};
  const ValueId all = editor.insert_before(anchor, OpKind::linear, std::move(inputs), first.attributes, first.scope)[0];
  Ints sizes;
  for (const NodeId n : nodes) sizes.push_back(editor.value(editor.node(n).inputs[weight_operand]).type.dims[0].constant());
  const std::vector<ValueId> parts = editor.insert_before(anchor, OpKind::split, {all}, {{"axis", std::int64_t{-1}}, {"sizes", sizes}}, first.scope);
  std::vector<std::pair<ValueId, ValueId>> results;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    results.emplace_back(editor.node(nodes[i]).outputs[0], parts[i]);
    names.push_back(editor.value(results.back().first).name);
  }
  editor.replace(nodes, results);
  for (std::size_t i = 0; i < nodes.size(); ++i) editor.rename(parts[i], names[i]);
  return true;
}

}  // namespace cermet
