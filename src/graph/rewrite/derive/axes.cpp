#include "graph/rewrite/derive/axes.hpp"

#include <deque>
#include <numeric>

namespace cermet {

Axis Axes::add(const Dim& extent) {
  all_.push_back({extent});
  return static_cast<Axis>(all_.size() - 1);
}

AxisList Axes::fresh(const Dim& extent) { return extent == Dim(1) ? AxisList() : AxisList{add(extent)}; }

std::vector<AxisList> Axes::fresh(const Dims& extents) {
  std::vector<AxisList> dims;
  for (const Dim& d : extents) dims.push_back(fresh(d));
  return dims;
}

Dim Axes::extent(const AxisList& list) const {
  Dim all = 1;
  for (const Axis a : list) all = all * extent(a);
  return all;
}

AxisList Axes::resolve(const AxisList& list) const {
  AxisList parts;
  for (const Axis a : list) {
    const Entry& entry = all_[static_cast<std::size_t>(a)];
    if (entry.outer < 0) {
      parts.push_back(a);
      continue;
    }
    for (const Axis part : resolve({entry.outer, entry.inner})) parts.push_back(part);
  }
  return parts;
}

AxisList Axes::flat(const std::vector<AxisList>& dims) const {
  AxisList all;
  for (const AxisList& list : dims)
    for (const Axis a : resolve(list)) all.push_back(a);
  return all;
}

std::optional<std::vector<AxisList>> Axes::group(const AxisList& list, const Dims& extents) {
  const AxisList parts = resolve(list);
  std::deque<Axis> left(parts.begin(), parts.end());
  std::vector<AxisList> dims;
  for (const Dim& whole : extents) {
    if (whole == Dim(0)) return {};
    AxisList taken;
    for (Dim remaining = whole; remaining != Dim(1);) {
      if (left.empty()) return {};
      const Axis next = left.front();
      if (const auto quotient = exact_quotient(remaining, extent(next))) {
        remaining = *quotient;
        taken.push_back(next);
        left.pop_front();
        continue;
      }
      const auto inner = exact_quotient(extent(next), remaining);
      if (!inner) return {};
      const Axis first = add(remaining), second = add(*inner);
      all_[static_cast<std::size_t>(next)].outer = first;
      all_[static_cast<std::size_t>(next)].inner = second;
      taken.push_back(first);
      left.front() = second;
      remaining = 1;
    }
    dims.push_back(std::move(taken));
  }
  if (!left.empty()) return {};
  return dims;
}

std::optional<std::vector<AxisList>> Axes::broadcast(const std::vector<AxisList>& to, const Dims& extents) const {
  if (extents.size() > to.size()) return {};
  std::vector<AxisList> dims;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const AxisList& axes = to[to.size() - extents.size() + i];
    const bool spread = extents[i] == Dim(1);
    if (!spread && extents[i] != extent(axes)) return {};
    dims.push_back(spread ? AxisList() : axes);
  }
  return dims;
}

std::optional<Maker> maker_of(const GraphEditor& editor, ValueId id) {
  const Value& value = editor.value(id);
  if (const ConstantExpression* e = value.expression()) {
    if (e->output != 0) return {};
    return Maker{e->op, e->inputs, e->attributes};
  }
  const NodeId n = editor.producer(id);
  if (n == no_node || editor.node(n).outputs[0] != id) return {};
  return Maker{editor.node(n).op, editor.node(n).inputs, editor.node(n).attributes};
}

Ints permutation_of(const GraphEditor& editor, const Maker& transpose) {
  const AttributeValue* given = transpose.attributes.find("permutation");
  Ints permutation = given ? std::get<Ints>(*given) : Ints();
  if (!permutation.empty()) return permutation;
  permutation.resize(editor.value(transpose.inputs[0]).type.dims.size());
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  return permutation;
}
Ints permutation_of(const GraphEditor& editor, NodeId transpose) {
  const Node& node = editor.node(transpose);
  return permutation_of(editor, Maker{node.op, node.inputs, node.attributes});
}

std::optional<IndexedValue> Axes::before(const GraphEditor& editor, const IndexedValue& result) {
  const NodeId n = editor.producer(result.value);
  if (n == no_node) return {};
  const Node& node = editor.node(n);
  return before(editor, result, Maker{node.op, node.inputs, node.attributes});
}

std::optional<IndexedValue> Axes::before_any(const GraphEditor& editor, const IndexedValue& result) {
  const auto view = maker_of(editor, result.value);
  return view ? before(editor, result, *view) : std::nullopt;
}

std::optional<IndexedValue> Axes::before(const GraphEditor& editor, const IndexedValue& result, const Maker& view) {
  if (view.op != OpKind::reshape && view.op != OpKind::transpose && view.op != OpKind::expand) return {};
  IndexedValue operand{view.inputs[0], {}};
  const Dims& extents = editor.value(operand.value).type.dims;
  if (view.op == OpKind::transpose) {
    const Ints permutation = permutation_of(editor, view);
    operand.dims.resize(permutation.size());
    for (std::size_t i = 0; i < permutation.size(); ++i)
      operand.dims[static_cast<std::size_t>(permutation[i])] = result.dims[i];
    return operand;
  }
  auto dims = view.op == OpKind::reshape ? group(flat(result.dims), extents) : broadcast(result.dims, extents);
  if (!dims) return {};
  operand.dims = std::move(*dims);
  return operand;
}

std::optional<IndexedValue> Axes::after(const GraphEditor& editor, NodeId view, const IndexedValue& operand) {
  const Node& node = editor.node(view);
  IndexedValue result{node.outputs[0], {}};
  if (node.op == OpKind::transpose) {
    for (const std::int64_t axis : permutation_of(editor, view))
      result.dims.push_back(operand.dims[static_cast<std::size_t>(axis)]);
    return result;
  }
  if (node.op != OpKind::reshape) return {};
  auto dims = group(flat(operand.dims), editor.value(result.value).type.dims);
  if (!dims) return {};
  result.dims = std::move(*dims);
  return result;
}

IndexedValue Axes::source(const GraphEditor& editor, IndexedValue value) {
  while (auto operand = before(editor, value)) value = std::move(*operand);
  return value;
}

IndexedValue Axes::source_of_moves(const GraphEditor& editor, IndexedValue value) {
  for (;;) {
    const NodeId n = editor.producer(value.value);
    if (n == no_node || editor.node(n).op == OpKind::expand) return value;
    auto operand = before(editor, value);
    if (!operand) return value;
    value = std::move(*operand);
  }
}

}  // namespace cermet
