#include "graph/graph.hpp"

#include <algorithm>

#include "op/schema/operator.hpp"

namespace cermet {
namespace {

std::string joined(std::string_view scope, std::string_view name) {
  return scope.empty() ? std::string(name) : fmt::format("{}.{}", scope, name);
}

std::vector<std::optional<TensorType>> types_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::optional<TensorType>> types;
  for (const ValueId id : ids) types.push_back(id ? std::optional(graph.type(id)) : std::nullopt);
  return types;
}

}  // namespace

ValueId Graph::add_value(std::string value_name, TensorType type, ValueKind kind, ConstantSource source) {
  require(!value_name.empty(), "graph '{}': expected a name for every value, found an empty one", name);
  const ValueId id{static_cast<std::int32_t>(values_.size())};
  require(names_.add(value_name, id), "graph '{}': value '{}': expected a name of its own, found one that is taken",
          name, value_name);
  values_.push_back({std::move(value_name), std::move(type), kind, -1, std::move(source)});
  uses_.emplace_back();
  return id;
}

bool is_order(const Ints& order, int rank) {
  Ints sorted = order;
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<std::int64_t>(i)) return false;
  return order.empty() || std::ssize(order) == rank;
}

ValueId Graph::add_input(std::string_view value_name, TensorType type, Ints order) {
  require(is_order(order, type.rank()), "input '{}': order: expected each of {} dimensions once, found {}", value_name,
          type.rank(), to_string(AttributeValue(order)));
  const ValueId id = add_value(std::string(value_name), std::move(type), ValueKind::input);
  values_.back().order = std::move(order);
  return id;
}

ValueId Graph::add_constant(std::string_view value_name, TensorType type) {
  require(type.is_constant(), "graph '{}': constant '{}': expected constant dimensions, found {}", name, value_name,
          type.to_string());
  return add_value(std::string(value_name), std::move(type), ValueKind::constant);
}

ValueId Graph::add_constant(std::string_view value_name, TensorData data) {
  TensorType type = data.type();
  return add_value(std::string(value_name), std::move(type), ValueKind::constant, std::move(data));
}

ValueId Graph::add_constant(std::string_view value_name, ConstantExpression expression) {
  try {
    TensorType type = types_of(expression).at(static_cast<std::size_t>(expression.output));
    return add_value(std::string(value_name), std::move(type), ValueKind::constant, std::move(expression));
  } catch (const Error& error) {
    throw Error(error.status(), fmt::format("constant '{}': {}", value_name, error.what()));
  }
}

std::vector<TensorType> Graph::types_of(const ConstantExpression& expression) const {
  const OpDefinition& op = definition(expression.op);
  for (const ValueId id : expression.inputs)
    if (id && value(id).kind != ValueKind::constant)
      fail(Status::invalid_argument, "{}: expected constants to compute a constant of, found '{}'", op.name,
           value(id).name);
  require(std::ranges::all_of(op.aliases, [](int input) { return input < 0; }),
          "{}: expected an operator that updates nothing in place", op.name);
  std::vector<TensorType> types =
      make_problem(op, cermet::types_of(*this, expression.inputs), expression.attributes).outputs;
  require(expression.output >= 0 && static_cast<std::size_t>(expression.output) < types.size(),
          "{}: expected a result below {}, found {}", op.name, types.size(), expression.output);
  return types;
}

void Graph::set_range(const Symbol& symbol, DimRange range) {
  require(range.least >= 0 && range.least <= range.greatest,
          "graph '{}': symbol '{}': expected a range from 0 on that is not empty, found [{}, {}]", name, symbol.name(),
          range.least, range.greatest);
  const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), symbol,
                                   [](const SymbolRange& r, const Symbol& s) { return r.symbol < s; });
  if (at != ranges_.end() && at->symbol == symbol) at->range = range;
  else ranges_.insert(at, {symbol, range});
}

std::vector<std::string> result_names(Names& names, std::string_view scope, const OpDefinition& op, std::size_t count,
                                      const std::vector<std::string>& given) {
  require(given.empty() || given.size() == count, "{}: expected {} names for the results, found {}", op.name, count,
          given.size());
  if (count == 0 || (!given.empty() && !given.front().empty())) return given;
  std::vector<std::string> suffixes;
  for (std::size_t o = 0; o < count; ++o) {
    const bool named = o < op.outputs.size() && !op.outputs[o].variadic;
    suffixes.push_back(count == 1 ? ""
                                  : fmt::format(".{}", named ? std::string(op.outputs[o].name) : std::to_string(o)));
  }
  return names.fresh(joined(scope, op.name), suffixes);
}

std::vector<ValueId> Graph::apply_all(OpKind kind, std::vector<ValueId> inputs, const Attributes& attributes,
                                      const std::vector<std::string>& names) try {
  const OpDefinition& op = definition(kind);
  const Problem problem = make_problem(op, cermet::types_of(*this, inputs), attributes);
  const std::vector<std::string> made = cermet::result_names(names_, scope_, op, problem.outputs.size(), names);
  Node node{kind, std::move(inputs), {}, attributes, scope_, super_kernel_};
  node.inputs.resize(problem.inputs.size());
  for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
    node.outputs.push_back(add_value(made[o], problem.outputs[o], ValueKind::intermediate));
    values_.back().producer = static_cast<std::int32_t>(nodes_.size());
  }
  note_uses(node, static_cast<std::int32_t>(nodes_.size()));
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
} catch (const Error& error) {
  if (scope_.empty()) throw;
  throw Error(error.status(), fmt::format("{}: {}", scope_, error.what()));
}

ValueId Graph::apply(OpKind op, std::vector<ValueId> inputs, const Attributes& attributes,
                     std::string_view value_name) {
  std::vector<std::string> names;
  if (!value_name.empty()) names.emplace_back(value_name);
  const std::vector<ValueId> outputs = apply_all(op, std::move(inputs), attributes, names);
  CERMET_ASSERT(outputs.size() == 1);
  return outputs.front();
}

void Graph::add_output(std::string_view output_name, ValueId id, Ints order) {
  require(is_order(order, value(id).type.rank()), "output '{}': order: expected each of {} dimensions once, found {}",
          output_name, value(id).type.rank(), to_string(AttributeValue(order)));
  const bool added = output_names_.emplace(output_name).second;
  require(added, "graph '{}': output '{}': expected a name of its own, found one that is taken", name, output_name);
  outputs_.push_back({std::string(output_name), id, std::move(order)});
}

void Graph::add_update(ValueId input, ValueId stored) {
  const Value &to = value(input), &from = value(stored);
  require(to.kind == ValueKind::input, "update of '{}': expected an input of graph '{}', found {}", to.name, name,
          to.kind == ValueKind::constant ? "a constant" : "a node's result");
  if (to.type != from.type)
    fail(Status::invalid_argument, "update of '{}': expected {}, found '{}': {}", to.name, to.type.to_string(),
         from.name, from.type.to_string());
  require(std::ranges::find(updates_, input, &GraphUpdate::input) == updates_.end(),
          "update of '{}': expected one of each input, found two", to.name);
  updates_.push_back({input, stored});
}

std::vector<ValueId> Graph::kept_values() const {
  std::vector<ValueId> kept;
  for (const GraphOutput& output : outputs_) kept.push_back(output.value);
  for (const GraphUpdate& update : updates_) kept.push_back(update.value);
  return kept;
}

Graph Graph::from_parts(std::string name, std::vector<Value> values, std::vector<Node> nodes,
                        std::vector<GraphOutput> outputs, SymbolRanges ranges, std::vector<SuperKernel> super_kernels,
                        std::vector<GraphUpdate> updates) {
  Graph graph;
  graph.name = std::move(name);
  graph.values_ = std::move(values);
  graph.nodes_ = std::move(nodes);
  graph.outputs_ = std::move(outputs);
  graph.ranges_ = std::move(ranges);
  graph.super_kernels_ = std::move(super_kernels);
  graph.updates_ = std::move(updates);
  for (std::size_t i = 0; i < graph.values_.size(); ++i)
    graph.names_.add(graph.values_[i].name, {static_cast<std::int32_t>(i)});
  for (const GraphOutput& output : graph.outputs_) graph.output_names_.insert(output.name);
  graph.uses_.resize(graph.values_.size());
  for (std::size_t n = 0; n < graph.nodes_.size(); ++n) graph.note_uses(graph.nodes_[n], static_cast<std::int32_t>(n));
  return graph;
}

void Graph::note_uses(const Node& node, std::int32_t position) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (const ValueId id = node.inputs[i];
        id && static_cast<std::size_t>(id.index) < uses_.size())  // parts are not verified yet
      uses_[static_cast<std::size_t>(id.index)].push_back({position, static_cast<std::int32_t>(i)});
}

const Value& Graph::value(ValueId id) const {
  CERMET_ASSERT(id.index >= 0 && static_cast<std::size_t>(id.index) < values_.size());
  return values_[static_cast<std::size_t>(id.index)];
}

std::span<const Use> Graph::uses(ValueId id) const {
  value(id);
  return uses_[static_cast<std::size_t>(id.index)];
}

ValueId Graph::find(std::string_view value_name) const { return names_.find(value_name); }

Problem Graph::problem_of(const Node& node, const SymbolValues& maximum) const {
  Problem problem = make_problem(definition(node.op), cermet::types_of(*this, node.inputs), node.attributes);
  problem.maximum = maximum;
  for (std::size_t i = 0; i < node.inputs.size() && i < 64; ++i)
    if (node.inputs[i] && value(node.inputs[i]).kind == ValueKind::constant)
      problem.constant_inputs |= std::uint64_t{1} << i;
  return problem;
}

Graph::Scope::Scope(Graph& graph, std::string_view name) : graph_(graph), previous_length_(graph.scope_.size()) {
  graph.scope_ = joined(graph.scope_, name);
}
Graph::Scope::~Scope() { graph_.scope_.resize(previous_length_); }

}  // namespace cermet
