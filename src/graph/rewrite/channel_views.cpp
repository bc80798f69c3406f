// What is left where images have their channels last and the graph wants them first: transpositions around a reshape
// that cancel, and one before a product, whose weights may stand in the other order as well.
#include <algorithm>

#include "graph/rewrite/derive/axes.hpp"
#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

/// The node of this kind that makes a value for one reader alone; no_node where there is none.
NodeId made_for(const GraphEditor& editor, ValueId id, OpKind op) {
  const NodeId n = editor.producer(id);
  return n != no_node && editor.node(n).op == op && editor.uses(id).size() == 1 && !editor.is_output(id) ? n : no_node;
}

/// Attribute "shape" that gives a type from another of the same elements; nothing where two dimensions follow from
/// others.
std::optional<Ints> shape_between(const Dims& from, const Dims& to) {
  Ints shape;
  for (std::size_t a = 0; a < to.size(); ++a) {
    const bool stays = a < from.size() && to[a] == from[a];
    if (to[a] == Dim(0)) return {};
    shape.push_back(stays ? 0 : to[a].is_constant() ? to[a].constant() : -1);
  }
  if (std::ranges::count(shape, -1) > 1) return {};
  return shape;
}

void put_in_place(GraphEditor& editor, std::span<const NodeId> nodes, ValueId from, ValueId to) {
  const std::string name = editor.value(from).name;
  const std::pair<ValueId, ValueId> results[] = {{from, to}};
  editor.replace(nodes, results);
  editor.rename(to, name);
}

}  // namespace

bool cancel_transposes(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node last = editor.node(anchor);
  const NodeId reshape = made_for(editor, last.inputs[0], OpKind::reshape);
  if (reshape == no_node) return false;
  const NodeId first = made_for(editor, editor.node(reshape).inputs[0], OpKind::transpose);
  if (first == no_node) return false;
  const ValueId x = editor.node(first).inputs[0];
  Axes axes;
  std::optional<IndexedValue> value = IndexedValue{x, axes.fresh(editor.value(x).type.dims)};
  const std::vector<AxisList> own = value->dims;
  for (const NodeId n : {first, reshape, anchor}) {
    value = axes.after(editor, n, *value);
    if (!value) return false;
  }
  const auto shape = shape_between(editor.value(x).type.dims, editor.value(last.outputs[0]).type.dims);
  if (!shape || axes.flat(own) != axes.flat(value->dims)) return false;
  const ValueId made = editor.insert_before(anchor, OpKind::reshape, {x}, {{"shape", *shape}}, last.scope)[0];
  const NodeId nodes[] = {first, reshape, anchor};
  put_in_place(editor, nodes, last.outputs[0], made);
  return true;
}

bool transpose_weight(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node linear = editor.node(anchor);
  const NodeId reshape = made_for(editor, linear.inputs[0], OpKind::reshape);
  if (reshape == no_node) return false;
  const Node flat = editor.node(reshape);
  const NodeId turn = made_for(editor, flat.inputs[0], OpKind::transpose);
  if (turn == no_node) return false;
  const ValueId x = editor.node(turn).inputs[0], w = linear.inputs[1];
  const Ints permutation = permutation_of(editor, turn);
  const Dims turned = editor.value(flat.inputs[0]).type.dims, joined = editor.value(linear.inputs[0]).type.dims;
  if (joined.empty() || joined.size() >= turned.size()) return false;
  // The leading dimensions stay; the others are the columns of the product's operand.
  const std::size_t kept = joined.size() - 1;
  for (std::size_t a = 0; a < turned.size(); ++a) {
    if (a < kept && (permutation[a] != static_cast<std::int64_t>(a) || turned[a] != joined[a])) return false;
    if (a >= kept && (!turned[a].is_constant() || turned[a] == Dim(0))) return false;
  }
  const Value& weight = editor.value(w);
  if (weight.kind != ValueKind::constant || editor.uses(w).size() != 1 || editor.is_output(w)) return false;
  Ints parts{weight.type.dims[0].constant()}, order{0},
      whole{weight.type.dims[0].constant(), weight.type.dims[1].constant()};
  for (std::size_t a = kept; a < turned.size(); ++a) {
    parts.push_back(turned[a].constant());
    order.push_back(std::ranges::find(permutation, static_cast<std::int64_t>(a)) - permutation.begin() -
                    static_cast<std::int64_t>(kept) + 1);
  }
  const std::string name = weight.name;
  const ValueId apart =
      editor.add_constant(name + ".parts", ConstantExpression{OpKind::reshape, {w}, {{"shape", parts}}, 0});
  const ValueId moved =
      editor.add_constant(name + ".moved", ConstantExpression{OpKind::transpose, {apart}, {{"permutation", order}}, 0});
  std::vector<ValueId> inputs = linear.inputs;
  inputs[0] = editor.insert_before(anchor, OpKind::reshape, {x}, flat.attributes, flat.scope)[0];
  inputs[1] =
      editor.add_constant(name + ".columns", ConstantExpression{OpKind::reshape, {moved}, {{"shape", whole}}, 0});
  const ValueId made =
      editor.insert_before(anchor, OpKind::linear, std::move(inputs), linear.attributes, linear.scope)[0];
  const NodeId nodes[] = {turn, reshape, anchor};
  put_in_place(editor, nodes, linear.outputs[0], made);
  return true;
}

}  // namespace cermet
