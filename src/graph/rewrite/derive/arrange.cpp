#include "graph/rewrite/derive/arrange.hpp"

#include <algorithm>

namespace cermet {

ValueId Arranger::apply(OpKind op, const std::vector<ValueId>& operands, const Attributes& attributes) {
  const bool is_constant =
      std::ranges::all_of(operands, [&](ValueId id) { return editor_.value(id).kind == ValueKind::constant; });
  if (is_constant)
    return editor_.add_constant(editor_.value(operands[0]).name + ".arranged",
                                ConstantExpression{op, operands, attributes, 0});
  const NodeId n = editor_.next_id();
  const ValueId made = editor_.insert_before(place_, op, operands, attributes, scope_)[0];
  made_.push_back(n);
  return made;
}

ValueId Arranger::apply_once(OpKind op, const std::vector<ValueId>& operands, const Attributes& attributes) {
  for (const Use use : editor_.uses(operands[0])) {
    const Node& node = editor_.node(use.node);
    if (node.op == op && node.inputs == operands && node.attributes == attributes) return node.outputs[0];
  }
  return apply(op, operands, attributes);
}

void Arranger::undo() {
  for (; !made_.empty(); made_.pop_back()) editor_.erase(made_.back());
}

Dims Arranger::extents(const std::vector<AxisList>& dims) const {
  Dims list;
  for (const AxisList& axes : dims) list.push_back(axes_.extent(axes));
  return list;
}

std::optional<ValueId> Arranger::reshape(ValueId id, const Dims& dims) {
  const Dims from = editor_.value(id).type.dims;
  if (from == dims) return id;
  if (std::ranges::find(dims, Dim(0)) != dims.end()) return {};  // which a reshape cannot say
  Ints shape;
  for (std::size_t a = 0; a < dims.size(); ++a)
    shape.push_back(a < from.size() && from[a] == dims[a] ? 0 : dims[a].is_constant() ? dims[a].constant() : -1);
  if (std::ranges::count(shape, -1) > 1) return {};
  return apply_once(OpKind::reshape, {id}, {{"shape", shape}});
}

std::optional<ValueId> Arranger::arrange(const IndexedValue& value, const std::vector<AxisList>& dims) {
  const AxisList from = axes_.flat(value.dims), wanted = axes_.flat(dims);
  AxisList present, missing;
  for (const Axis a : wanted) (std::ranges::find(from, a) != from.end() ? present : missing).push_back(a);
  std::optional<ValueId> id = value.value;
  const auto apart = [](const AxisList& list) {
    std::vector<AxisList> each;
    for (const Axis a : list) each.push_back({a});
    return each;
  };
  if (present != from) {
    id = reshape(*id, extents(apart(from)));
    if (!id) return {};
    Ints permutation;
    for (const Axis a : present) permutation.push_back(std::ranges::find(from, a) - from.begin());
    id = apply(OpKind::transpose, {*id}, {{"permutation", permutation}});
  }
  if (!missing.empty()) {
    Dims thin;
    Ints whole;
    for (const Axis a : wanted) {
      const bool spreads = std::ranges::find(missing, a) != missing.end();
      if (spreads && !axes_.extent(a).is_constant()) return {};
      thin.push_back(spreads ? Dim(1) : axes_.extent(a));
      whole.push_back(spreads ? axes_.extent(a).constant() : -1);
    }
    id = reshape(*id, thin);
    if (!id) return {};
    id = apply(OpKind::expand, {*id}, {{"shape", whole}});
  }
  return reshape(*id, extents(dims));
}

void erase_unread(GraphEditor& editor, NodeId n) {
  if (n == no_node || !editor.has(n)) return;
  for (const ValueId id : editor.node(n).outputs)
    if (!editor.uses(id).empty() || editor.is_output(id)) return;
  const std::vector<ValueId> inputs = editor.node(n).inputs;
  editor.erase(n);
  for (const ValueId id : inputs)
    if (id) erase_unread(editor, editor.producer(id));
}

bool is_copied(const Axes& axes, const IndexedValue& value, const std::vector<AxisList>& dims) {
  return axes.flat(value.dims) != axes.flat(dims);
}

}  // namespace cermet
