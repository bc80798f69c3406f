// What is computed of each row by itself may be computed before rows change their places or after: where they change
// them first, a product stands beside what follows it, and a normalization beside the product that reads it.
#include <algorithm>

#include "graph/rewrite/derive/axes.hpp"
#include "graph/rewrite/replace.hpp"
#include "op/schema/axes.hpp"

namespace cermet {
namespace {

/// Nodes that move whole rows of one value, in an order in which they run, and the one value that others read.
struct RowMoves {
  std::vector<NodeId> nodes;
  ValueId result;
};

bool is_last(const GraphEditor& editor, ValueId id, std::int64_t axis) {
  const int rank = editor.value(id).type.rank();
  return wrap_axis(axis, rank) == rank - 1;
}

/// Whether a node moves rows and leaves each of them whole.
bool moves_rows(const GraphEditor& editor, NodeId n) {
  const Node& node = editor.node(n);
  const auto attribute = [&](std::string_view name) { return node.attributes.find(name); };
  const Dims &from = editor.value(node.inputs[0]).type.dims, &to = editor.value(node.outputs[0]).type.dims;
  if (from.empty() || to.empty() || from.back() != to.back()) return false;
  switch (node.op) {
    case OpKind::reshape: return attribute("shape");  // not with dimensions as text
    case OpKind::transpose: return permutation_of(editor, n).back() == static_cast<std::int64_t>(from.size()) - 1;
    case OpKind::concat:
      return !is_last(editor, node.inputs[0], attribute("axis") ? std::get<std::int64_t>(*attribute("axis")) : 0);
    case OpKind::slice:
      if (!attribute("axes") || std::get<Ints>(*attribute("axes")).empty()) return false;
      return std::ranges::none_of(std::get<Ints>(*attribute("axes")),
                                  [&](std::int64_t axis) { return is_last(editor, node.inputs[0], axis); });
    default: return false;
  }
}

/// Everything that moves rows of a value, where only its end is read elsewhere.
std::optional<RowMoves> moves_behind(const GraphEditor& editor, ValueId from) {
  constexpr std::size_t most_nodes = 24;
  RowMoves moves;
  std::vector<ValueId> values{from};
  const auto is_moved = [&](ValueId id) { return std::ranges::find(values, id) != values.end(); };
  for (std::size_t v = 0; v < values.size(); ++v) {
    for (const Use use : editor.uses(values[v])) {
      if (std::ranges::find(moves.nodes, use.node) != moves.nodes.end() ||
          !std::ranges::all_of(editor.node(use.node).inputs, is_moved))
        continue;
      if (!moves_rows(editor, use.node) || moves.nodes.size() == most_nodes) continue;
      moves.nodes.push_back(use.node);
      values.push_back(editor.node(use.node).outputs[0]);
    }
  }
  for (const ValueId id : values) {
    const auto is_outside = [&](Use use) { return std::ranges::find(moves.nodes, use.node) == moves.nodes.end(); };
    if (!editor.is_output(id) && std::ranges::none_of(editor.uses(id), is_outside)) continue;
    if (moves.result) return {};
    moves.result = id;
  }
  const bool any = std::ranges::any_of(moves.nodes, [&](NodeId n) { return editor.node(n).op != OpKind::reshape; });
  if (!any || moves.result == from || editor.is_output(moves.result)) return {};
  return moves;
}

Dim rows_of(const GraphEditor& editor, ValueId id) {
  const Dims& dims = editor.value(id).type.dims;
  Dim rows = 1;
  for (std::size_t a = 0; a + 1 < dims.size(); ++a) rows = rows * dims[a];
  return rows;
}

/// The rows of another value, of its own length, moved alike.
ValueId moved(GraphEditor& editor, const RowMoves& moves, ValueId from, ValueId other, NodeId place) {
  std::vector<std::pair<ValueId, ValueId>> known{{from, other}};
  const Dim width = editor.value(other).type.dims.back();
  for (const NodeId n : moves.nodes) {
    const Node node = editor.node(n);
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(std::ranges::find(known, id, &std::pair<ValueId, ValueId>::first)->second);
    Attributes attributes = node.attributes;
    if (node.op == OpKind::reshape) {
      Ints shape = std::get<Ints>(*attributes.find("shape"));
      shape.back() = width.constant();
      attributes.set("shape", std::move(shape));
    }
    known.emplace_back(node.outputs[0],
                       editor.insert_before(place, node.op, std::move(inputs), attributes, node.scope)[0]);
  }
  return known.back().second;
}

/// The moves come to an end after everything, so that the last of them gives the result.
bool ends_last(const GraphEditor& editor, const RowMoves& moves) {
  return editor.node(moves.nodes.back()).outputs[0] == moves.result;
}

/// The node computed of moved rows, in the place of its moved result.
bool put_moves_first(GraphEditor& editor, NodeId n, const RowMoves& moves) {
  const Node node = editor.node(n);
  const Dim& width = editor.value(node.inputs[0]).type.dims.back();
  if (!width.is_constant() || width == Dim(0) || !ends_last(editor, moves)) return false;
  for (const NodeId move : moves.nodes) {
    const Node& each = editor.node(move);
    const AttributeValue* shape = each.attributes.find("shape");
    if (each.op == OpKind::reshape && std::get<Ints>(*shape).size() != editor.value(each.outputs[0]).type.dims.size())
      return false;
  }
  const Dim before = rows_of(editor, node.outputs[0]), after = rows_of(editor, moves.result);
  if (before != after && !(before.is_constant() && after.is_constant() && after.constant() < before.constant()))
    return false;
  const NodeId place = moves.nodes.back();
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = moved(editor, moves, node.outputs[0], node.inputs[0], place);
  const ValueId made = editor.insert_before(place, node.op, std::move(inputs), node.attributes, node.scope)[0];
  const std::string name = editor.value(moves.result).name;
  std::vector<NodeId> nodes{n};
  nodes.insert(nodes.end(), moves.nodes.begin(), moves.nodes.end());
  const std::pair<ValueId, ValueId> results[] = {{moves.result, made}};
  editor.replace(nodes, results);
  editor.rename(made, name);
  return true;
}

}  // namespace

bool move_rows_before_linear(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node linear = editor.node(anchor);
  const auto moves = moves_behind(editor, linear.outputs[0]);
  if (!moves || editor.uses(moves->result).size() != 1) return false;
  const Node& reader = editor.node(editor.uses(moves->result)[0].node);
  if (reader.op != OpKind::add || editor.value(reader.inputs[0]).type.dims != editor.value(reader.inputs[1]).type.dims)
    return false;
  // Rows that are longer before the product would cost more to move.
  const Dim &from = editor.value(linear.inputs[0]).type.dims.back(),
            &to = editor.value(linear.outputs[0]).type.dims.back();
  if (!from.is_constant() || !to.is_constant() || from.constant() > to.constant()) return false;
  return put_moves_first(editor, anchor, *moves);
}

bool move_rows_before_norm(const Rule&, GraphEditor& editor, NodeId anchor) {
  const Node norm = editor.node(anchor);
  for (std::size_t i = 1; i < norm.inputs.size(); ++i)
    if (norm.inputs[i] && editor.value(norm.inputs[i]).type.rank() != 1) return false;
  const auto moves = moves_behind(editor, norm.outputs[0]);
  if (!moves || !std::ranges::all_of(editor.uses(moves->result), [&](Use use) {
        return editor.node(use.node).op == OpKind::linear && use.operand == 0;
      }))
    return false;
  return put_moves_first(editor, anchor, *moves);
}

}  // namespace cermet
