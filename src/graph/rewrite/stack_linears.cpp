#include <algorithm>
#include <optional>

#include "graph/rewrite/replace.hpp"
#include "op/operands.hpp"

namespace cermet {
namespace {

/// A constant that nothing else reads: others would be held twice, by themselves and in the stack.
bool is_own_constant(const GraphEditor& editor, const Node& node, std::size_t operand) {
  const ValueId id = node.inputs[operand];
  return id && editor.value(id).kind == ValueKind::constant && editor.uses(id).size() == 1 && !editor.is_output(id);
}

/// Whether two products may be one: the same rows, attributes and element types, weights that are constants of their
/// own, and constant biases.
bool fit_together(const GraphEditor& editor, const Node& a, const Node& b) {
  if (b.op != a.op || b.inputs[op::linear::x] != a.inputs[op::linear::x] || b.attributes != a.attributes) return false;
  if (!is_own_constant(editor, a, op::linear::w) || !is_own_constant(editor, b, op::linear::w)) return false;
  if (editor.value(a.inputs[op::linear::w]).type.dtype != editor.value(b.inputs[op::linear::w]).type.dtype)
    return false;
  const ValueId left = a.inputs[op::linear::bias], right = b.inputs[op::linear::bias];
  if (!left && !right) return true;
  // A vector may be held twice: exporters write equal biases once.
  const auto is_constant = [&](ValueId id) { return id && editor.value(id).kind == ValueKind::constant; };
  return is_constant(left) && is_constant(right) && editor.value(left).type.dtype == editor.value(right).type.dtype;
}

/// The sum with a constant vector that is all that reads a product: a bias that is rounded by itself.
struct OwnBias {
  NodeId add;
  ValueId bias;
};
std::optional<OwnBias> own_bias(const GraphEditor& editor, NodeId product) {
  const Node& node = editor.node(product);
  const ValueId result = node.outputs[0];
  if (editor.is_output(result) || editor.uses(result).size() != 1) return std::nullopt;
  const NodeId user = editor.uses(result).front().node;
  const Node& add = editor.node(user);
  if (add.op != OpKind::add || add.inputs[0] == add.inputs[1]) return std::nullopt;
  const ValueId bias = add.inputs[add.inputs[0] == result ? 1 : 0];
  const Dims bias_dims{editor.value(node.inputs[op::linear::w]).type.dims[0]};
  if (editor.value(bias).kind != ValueKind::constant || editor.value(bias).type.dims != bias_dims) return std::nullopt;
  return OwnBias{user, bias};
}

std::vector<ValueId> operands(const GraphEditor& editor, const std::vector<NodeId>& nodes, std::size_t operand) {
  std::vector<ValueId> parts;
  for (const NodeId n : nodes) parts.push_back(editor.node(n).inputs[operand]);
  return parts;
}

ValueId stacked(GraphEditor& editor, std::vector<ValueId> parts) {
  if (!parts.front()) return {};
  const std::string name = editor.value(parts.front()).name + ".stacked";
  return editor.add_constant(name,
                             ConstantExpression{OpKind::concat, std::move(parts), {{"axis", std::int64_t{0}}}, 0});
}

}  // namespace

/// The anchor is the first of the products in the order of the graph, so that a group is found once and whole.
bool stack_linears(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node first = editor.node(anchor);
  std::vector<NodeId> nodes;
  for (const Use use : editor.uses(first.inputs[op::linear::x]))
    if (use.operand == static_cast<std::int32_t>(op::linear::x) && fit_together(editor, first, editor.node(use.node)))
      nodes.push_back(use.node);
  std::ranges::sort(nodes);
  if (nodes.size() < 2 || nodes.front() != anchor) return false;
  nodes.resize(std::min(nodes.size(), static_cast<std::size_t>(max_variadic)));
  std::vector<ValueId> inputs{first.inputs[op::linear::x], stacked(editor, operands(editor, nodes, op::linear::w)),
                              stacked(editor, operands(editor, nodes, op::linear::bias))};
  ValueId all = editor.insert_before(anchor, OpKind::linear, std::move(inputs), first.attributes, first.scope)[0];
  std::vector<NodeId> replaced = nodes, last = nodes;  // last: whose results the parts are
  std::vector<ValueId> biases;
  for (const NodeId n : nodes) {
    const std::optional<OwnBias> own = own_bias(editor, n);
    if (!own) break;
    biases.push_back(own->bias);
    replaced.push_back(own->add);
  }
  if (biases.size() == nodes.size()) {
    all = editor.insert_before(anchor, OpKind::add, {all, stacked(editor, std::move(biases))}, {}, first.scope)[0];
    last.assign(replaced.begin() + static_cast<std::ptrdiff_t>(nodes.size()), replaced.end());
  } else {
    replaced = nodes;
  }
  Ints sizes;
  for (const NodeId n : nodes)
    sizes.push_back(editor.value(editor.node(n).inputs[op::linear::w]).type.dims[0].constant());
  const std::vector<ValueId> parts =
      editor.insert_before(anchor, OpKind::split, {all}, {{"axis", std::int64_t{-1}}, {"sizes", sizes}}, first.scope);
  std::vector<std::pair<ValueId, ValueId>> results;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    results.emplace_back(editor.node(last[i]).outputs[0], parts[i]);
    names.push_back(editor.value(results.back().first).name);
  }
  editor.replace(replaced, results);
  for (std::size_t i = 0; i < nodes.size(); ++i) editor.rename(parts[i], names[i]);
  return true;
}

}  // namespace cermet
