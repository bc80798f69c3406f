#include <algorithm>

#include "graph/rewrite/derive/cascade.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

RowExprPtr make(RowExpr::Kind kind, std::size_t index) { return std::make_shared<const RowExpr>(RowExpr{kind, index}); }
RowExprPtr call(OpKind op, std::vector<RowExprPtr> operands) {
  return std::make_shared<const RowExpr>(RowExpr{RowExpr::Kind::call, 0, op, std::move(operands)});
}

bool is_elementwise(OpKind op) {
  constexpr OpKind known[] = {OpKind::exp,    OpKind::log, OpKind::sqrt, OpKind::rsqrt, OpKind::reciprocal,
                              OpKind::square, OpKind::abs, OpKind::neg,  OpKind::add,   OpKind::sub,
                              OpKind::mul,    OpKind::div, OpKind::max};
  return std::ranges::find(known, op) != std::end(known);
}
/// Taken apart even where no statistic is inside: their results are not negative.
bool is_opened(OpKind op) { return op == OpKind::square || op == OpKind::abs; }
bool is_reduction(OpKind op) {
  return op == OpKind::reduce_max || op == OpKind::reduce_min || op == OpKind::reduce_sum || op == OpKind::reduce_mean;
}

class CascadeReader {
 public:
  CascadeReader(const GraphEditor& editor, Axes& axes, RowCascade& cascade)
      : editor_(editor), axes_(axes), cascade_(cascade) {}

  RowExprPtr read(IndexedValue value) {
    value = axes_.source(editor_, std::move(value));
    const NodeId n = editor_.producer(value.value);
    if (n == no_node || --budget_ < 0) return operand(value);
    const Node& node = editor_.node(n);
    const std::size_t operands = cascade_.operands.size(), nodes = cascade_.nodes.size();
    RowExprPtr made;
    if (node.op == OpKind::softmax) made = softmax(node, value);
    else if (is_reduction(node.op)) made = reduction(node, value);
    else if (is_elementwise(node.op)) made = elementwise(node, value);
    if (!made) return operand(value);
    if (is_elementwise(node.op) && !is_opened(node.op) && !has_statistic(made)) {
      cascade_.operands.resize(operands);
      cascade_.nodes.resize(nodes);
      return operand(value);
    }
    if (std::ranges::find(cascade_.nodes, n) == cascade_.nodes.end()) cascade_.nodes.push_back(n);
    return made;
  }

 private:
  static bool has_statistic(const RowExprPtr& e) {
    return e->kind == RowExpr::Kind::statistic || std::ranges::any_of(e->operands, has_statistic);
  }

  RowExprPtr operand(const IndexedValue& value) {
    for (std::size_t i = 0; i < cascade_.operands.size(); ++i)
      if (cascade_.operands[i].value == value.value && axes_.flat(cascade_.operands[i].dims) == axes_.flat(value.dims))
        return make(RowExpr::Kind::operand, i);
    cascade_.operands.push_back(value);
    return make(RowExpr::Kind::operand, cascade_.operands.size() - 1);
  }

  RowExprPtr statistic(OpKind op, RowExprPtr of, ValueId value) {
    for (std::size_t i = 0; i < cascade_.statistics.size(); ++i)
      if (cascade_.statistics[i].reduction == op && to_string(cascade_.statistics[i].of) == to_string(of))
        return make(RowExpr::Kind::statistic, i);
    cascade_.statistics.push_back({op, std::move(of), value});
    return make(RowExpr::Kind::statistic, cascade_.statistics.size() - 1);
  }

  RowExprPtr elementwise(const Node& node, const IndexedValue& value) {
    std::vector<RowExprPtr> operands;
    for (const ValueId id : node.inputs) {
      auto dims = axes_.broadcast(value.dims, editor_.value(id).type.dims);
      if (!dims) return nullptr;
      operands.push_back(read({id, std::move(*dims)}));
    }
    return call(node.op, std::move(operands));
  }

  /// The operand's axes are those of the result, and the rows' where it reduces.
  RowExprPtr reduction(const Node& node, const IndexedValue& value) {
    const Dims& dims = editor_.value(node.inputs[0]).type.dims;
    const AttributeValue *axes = node.attributes.find("axes"), *keep = node.attributes.find("keepdims");
    if (!axes || std::get<Ints>(*axes).size() != 1) return nullptr;
    std::int64_t axis = std::get<Ints>(*axes)[0];
    if (axis < 0) axis += static_cast<std::int64_t>(dims.size());
    const auto at = static_cast<std::ptrdiff_t>(axis);
    if (dims[static_cast<std::size_t>(axis)] != axes_.extent(cascade_.axis)) return nullptr;
    IndexedValue from{node.inputs[0], value.dims};
    if (keep && std::get<bool>(*keep)) from.dims[static_cast<std::size_t>(axis)] = cascade_.axis;
    else from.dims.insert(from.dims.begin() + at, cascade_.axis);
    for (const AxisList& list : value.dims)
      if (std::ranges::any_of(axes_.resolve(list),
                              [&](Axis a) { return std::ranges::count(axes_.resolve(cascade_.axis), a) > 0; }))
        return nullptr;
    return statistic(node.op, read(std::move(from)), node.outputs[0]);
  }

  RowExprPtr softmax(const Node& node, const IndexedValue& value) {
    const AttributeValue* logarithm = node.attributes.find("log");
    if (logarithm && std::get<bool>(*logarithm)) return nullptr;
    if (axes_.resolve(value.dims.back()) != axes_.resolve(cascade_.axis)) return nullptr;
    const RowExprPtr x = operand({node.inputs[0], value.dims});
    const RowExprPtr weight = call(OpKind::exp, {call(OpKind::sub, {x, statistic(OpKind::reduce_max, x, {})})});
    return call(OpKind::div, {weight, statistic(OpKind::reduce_sum, weight, {})});
  }

  const GraphEditor& editor_;
  Axes& axes_;
  RowCascade& cascade_;
  int budget_ = 64;
};

}  // namespace

RowCascade read_cascade(const GraphEditor& editor, Axes& axes, const IndexedValue& value, const AxisList& axis) {
  RowCascade cascade;
  cascade.axis = axis;
  cascade.result = CascadeReader(editor, axes, cascade).read(value);
  return cascade;
}

void multiply_and_add(RowCascade& cascade, const IndexedValue& operand) {
  cascade.operands.push_back(operand);
  const RowExprPtr term =
      call(OpKind::mul, {cascade.result, make(RowExpr::Kind::operand, cascade.operands.size() - 1)});
  cascade.statistics.push_back({OpKind::reduce_sum, term, {}});
  cascade.result = make(RowExpr::Kind::statistic, cascade.statistics.size() - 1);
}

}  // namespace cermet
