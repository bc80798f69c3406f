#include "graph/rewrite/derive/scores.hpp"

#include <cmath>
#include <limits>

#include "format/element.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

std::optional<double> uniform_of(const GraphEditor& editor, ValueId id) {
  const Value& value = editor.value(id);
  if (const TensorData* data = value.data()) {
    constexpr std::int64_t most = 1 << 16;
    const std::int64_t count = data->type().elements().constant();
    if (count < 1 || count > most || (!dtypes::real.contains(value.type.dtype) && value.type.dtype != DType::boolean))
      return {};
    const auto element = [&](std::int64_t i) {
      return format::load_element(data->bytes().data(), value.type.dtype, i);
    };
    for (std::int64_t i = 1; i < count; ++i)
      if (element(i) != element(0)) return {};
    return element(0);
  }
  const ConstantExpression* e = value.expression();
  if (!e) return {};
  if (e->op == OpKind::expand || e->op == OpKind::reshape || e->op == OpKind::transpose)
    return uniform_of(editor, e->inputs[0]);
  if (e->op != OpKind::where) return {};
  const auto condition = uniform_of(editor, e->inputs[0]);
  return condition ? uniform_of(editor, e->inputs[*condition != 0 ? 1 : 2]) : std::nullopt;
}

namespace {

bool flag_of(const Node& node, std::string_view name) {
  const AttributeValue* value = node.attributes.find(name);
  return value && std::get<bool>(*value);
}

class ScoreSearch {
 public:
  ScoreSearch(const GraphEditor& editor, Axes& axes) : editor_(editor), axes_(axes) {}

  /// Whether the value, of which the scores are `factor` times, is the product and what was added to it.
  bool walk(const IndexedValue& value, double factor) {
    const NodeId n = editor_.producer(value.value);
    if (n == no_node) return stop(fmt::format("'{}' is not computed", editor_.value(value.value).name));
    if (--budget_ < 0) return stop("more than 64 operators lead to the scores");
    const Node& node = editor_.node(n);
    scores.nodes.push_back(n);
    if (auto operand = axes_.before(editor_, value))
      return node.op == OpKind::expand ? stop("scores are expanded") : walk(*operand, factor);
    switch (node.op) {
      case OpKind::matmul: return multiplied(n, value, factor);
      case OpKind::neg: return walk({node.inputs[0], value.dims}, -factor);
      case OpKind::mul:
      case OpKind::div: return scaled(node, value, factor);
      case OpKind::add:
      case OpKind::sub: return added(node, value, factor);
      case OpKind::where: return masked(node, value, factor);
      default:
        return stop(fmt::format("{} of '{}' is not linear in a product", definition(node.op).name,
                                editor_.value(node.inputs[0]).name));
    }
  }

  Scores scores;
  std::string reason = "no product was found";

 private:
  bool stop(std::string why) {
    reason = std::move(why);
    return false;
  }

  /// An operand with the axes of the result; nothing where it broadcasts.
  std::optional<IndexedValue> whole(ValueId operand, const IndexedValue& result) const {
    const Dims& dims = editor_.value(operand).type.dims;
    if (dims.size() != result.dims.size()) return {};
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] != axes_.extent(result.dims[i])) return {};
    return IndexedValue{operand, result.dims};
  }

  bool multiplied(NodeId n, const IndexedValue& value, double factor) {
    auto factors = factors_of(editor_, axes_, n, value, scores.reduced);
    if (!factors) return stop("operands of the product do not fit its result");
    scores.left = std::move(factors->first);
    scores.right = std::move(factors->second);
    scores.factor = factor;
    return true;
  }

  bool scaled(const Node& node, const IndexedValue& value, double factor) {
    for (const std::size_t side : {0, 1}) {
      const auto number = number_of(editor_, node.inputs[1 - side]);
      const auto other = whole(node.inputs[side], value);
      if (!number || !other || (node.op == OpKind::div && side == 1)) continue;
      return walk(*other, node.op == OpKind::mul ? factor * *number : factor / *number);
    }
    return stop(fmt::format("{} of scores by '{}', which is not one number", definition(node.op).name,
                            editor_.value(node.inputs[1]).name));
  }

  bool added(const Node& node, const IndexedValue& value, double factor) {
    for (const std::size_t side : {0, 1}) {
      const auto other = whole(node.inputs[side], value);
      auto dims = axes_.broadcast(value.dims, editor_.value(node.inputs[1 - side]).type.dims);
      if (!other || !dims) continue;
      const Scores before = scores;
      if (uniform_of(editor_, node.inputs[1 - side]) == 0)
        return walk(*other, node.op == OpKind::sub && side == 1 ? -factor : factor);
      const double of_other = node.op == OpKind::sub && side == 1 ? -factor : factor,
                   of_term = node.op == OpKind::sub && side == 0 ? -factor : factor;
      scores.biases.push_back({{node.inputs[1 - side], std::move(*dims)}, of_term});
      if (walk(*other, of_other)) return true;
      scores = before;
    }
    return false;
  }

  bool masked(const Node& node, const IndexedValue& value, double factor) {
    for (const std::size_t side : {1, 2}) {
      const auto other = whole(node.inputs[side], value);
      const auto number = number_of(editor_, node.inputs[3 - side]);
      auto dims = axes_.broadcast(value.dims, editor_.value(node.inputs[0]).type.dims);
      if (!other || !number || !dims) continue;
      const double score = *number * factor;
      const bool is_excluded = score == -std::numeric_limits<double>::infinity();
      if (!scores.biases.empty() && !is_excluded) return stop("something is added to the score of masked keys");
      if (!scores.masks.empty() && scores.masked_score != score) return stop("masks give different scores");
      const Scores before = scores;
      scores.masked_score = score;
      scores.masks.push_back({{node.inputs[0], std::move(*dims)}, 1, side == 2});
      if (walk(*other, factor)) return true;
      scores = before;
    }
    return false;
  }

  const GraphEditor& editor_;
  Axes& axes_;
  int budget_ = 64;
};

}  // namespace

std::optional<double> number_of(const GraphEditor& editor, ValueId id) {
  const Value& value = editor.value(id);
  const TensorData* data = value.data();
  if (value.kind != ValueKind::constant || !data || product(value.type.dims) != Dim(1) ||
      !dtypes::real.contains(value.type.dtype))
    return {};
  return format::load_element(data->bytes().data(), value.type.dtype, 0);
}

std::optional<std::pair<IndexedValue, IndexedValue>> factors_of(const GraphEditor& editor, Axes& axes, NodeId matmul,
                                                                const IndexedValue& result, AxisList& reduced) {
  const Node& node = editor.node(matmul);
  const std::size_t rank = result.dims.size();
  std::pair<IndexedValue, IndexedValue> factors;
  for (const std::size_t side : {0, 1}) {
    const Dims& dims = editor.value(node.inputs[side]).type.dims;
    const bool transposed = flag_of(node, side == 0 ? "transpose_a" : "transpose_b");
    const std::size_t summed = dims.size() - (transposed == (side == 0) ? 2 : 1);
    if (side == 0) reduced = axes.fresh(dims[summed]);
    const std::vector<AxisList> leading(result.dims.begin(), result.dims.end() - 2);
    auto batch = axes.broadcast(leading, Dims(dims.begin(), dims.end() - 2));
    if (!batch) return {};
    batch->resize(dims.size());
    (*batch)[summed] = reduced;
    (*batch)[summed == dims.size() - 1 ? dims.size() - 2 : dims.size() - 1] = result.dims[rank - 2 + side];
    (side == 0 ? factors.first : factors.second) = {node.inputs[side], std::move(*batch)};
  }
  return factors;
}

IndexedValue scaled_source(const GraphEditor& editor, Axes& axes, IndexedValue value, double& factor) {
  for (;;) {
    value = axes.source(editor, std::move(value));
    const NodeId n = editor.producer(value.value);
    if (n == no_node) return value;
    const Node& node = editor.node(n);
    if (node.op != OpKind::mul && node.op != OpKind::div) return value;
    bool found = false;
    for (const std::size_t side : {0, 1}) {
      const auto number = number_of(editor, node.inputs[1 - side]);
      const bool whole = editor.value(node.inputs[side]).type == editor.value(value.value).type;
      if (found || !number || !whole || (node.op == OpKind::div && side == 1)) continue;
      factor = node.op == OpKind::mul ? factor * *number : factor / *number;
      value.value = node.inputs[side];
      found = true;
    }
    if (!found) return value;
  }
}

ScoresOrReason find_scores(const GraphEditor& editor, Axes& axes, const IndexedValue& value) {
  ScoreSearch search(editor, axes);
  if (!search.walk(value, 1)) return {{}, std::move(search.reason)};
  return {std::move(search.scores), {}};
}

}  // namespace cermet
