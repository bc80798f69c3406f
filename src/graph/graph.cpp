#include "graph/graph.hpp"

#include <algorithm>

namespace cermet {
namespace {

std::string joined(std::string_view scope, std::string_view name) { return scope.empty() ? std::string(name) : fmt::format("{}.{}", scope, name); }

auto name_position(const std::vector<std::pair<std::string, std::int32_t>>& names, std::string_view name) {
  return std::lower_bound(names.begin(), names.end(), name, [](const auto& entry, std::string_view key) { return entry.first < key; });
}

std::vector<std::optional<TensorType>> types_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::optional<TensorType>> types;
  for (const ValueId id : ids) types.push_back(id ? std::optional(graph.type(id)) : std::nullopt);
  return types;
}

}  // namespace

ValueId Graph::add_value(std::string value_name, TensorType type, ValueKind kind) {
  require(!value_name.empty(), "graph '{}': expected a name for every value, found an empty one", name);
  const auto at = name_position(by_name_, value_name);
  require(at == by_name_.end() || at->first != value_name, "graph '{}': value '{}': expected a name of its own, found one that is taken", name, value_name);
  const auto index = static_cast<std::int32_t>(values_.size());
  by_name_.emplace(at, value_name, index);
  values_.push_back({std::move(value_name), std::move(type), kind, -1});
  return {index};
}

ValueId Graph::add_input(std::string_view value_name, TensorType type) { return add_value(std::string(value_name), std::move(type), ValueKind::input); }

ValueId Graph::add_constant(std::string_view value_name, TensorType type) {
  require(type.is_constant(), "graph '{}': constant '{}': expected constant dimensions, found {}", name, value_name, type.to_string());
  return add_value(std::string(value_name), std::move(type), ValueKind::constant);
}

std::string Graph::fresh_name(std::string_view base) const {
  std::string candidate(base);
  for (int n = 2; find(candidate); ++n) candidate = fmt::format("{}.{}", base, n);
  return candidate;
}

std::vector<std::string> Graph::output_names(const OpDefinition& op, std::size_t count, const std::vector<std::string>& names) const {
  require(names.empty() || names.size() == count, "{}: expected {} names for the results, found {}", op.name, count, names.size());
  if (!names.empty() && !names.front().empty()) return names;
  std::vector<std::string> made{fresh_name(joined(scope_, op.name))};
  if (count == 1) return made;
  // Results of one node share its base: "attention.rope.2.q", "attention.rope.2.k".
  for (int n = 1;; ++n) {
    const std::string base = n == 1 ? joined(scope_, op.name) : fmt::format("{}.{}", joined(scope_, op.name), n);
    made.clear();
    for (std::size_t o = 0; o < count; ++o) {
      const bool named = o < op.outputs.size() && !op.outputs[o].variadic;
      made.push_back(fmt::format("{}.{}", base, named ? std::string(op.outputs[o].name) : std::to_string(o)));
    }
    if (std::none_of(made.begin(), made.end(), [&](const std::string& m) { return static_cast<bool>(find(m)); })) return made;
  }
}

std::vector<ValueId> Graph::apply_all(OpKind kind, std::vector<ValueId> inputs, const Attributes& attributes, const std::vector<std::string>& names) try {
  const OpDefinition& op = definition(kind);
  const Problem problem = make_problem(op, types_of(*this, inputs), attributes);
  const std::vector<std::string> result_names = output_names(op, problem.outputs.size(), names);
  Node node{kind, std::move(inputs), {}, attributes, scope_};
  node.inputs.resize(problem.inputs.size());
  for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
    node.outputs.push_back(add_value(result_names[o], problem.outputs[o], ValueKind::intermediate));
    values_.back().producer = static_cast<std::int32_t>(nodes_.size());
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
} catch (const Error& error) {
  if (scope_.empty()) throw;
  throw Error(error.status(), fmt::format("{}: {}", scope_, error.what()));
}

ValueId Graph::apply(OpKind op, std::vector<ValueId> inputs, const Attributes& attributes, std::string_view value_name) {
  std::vector<std::string> names;
  if (!value_name.empty()) names.emplace_back(value_name);
  const std::vector<ValueId> outputs = apply_all(op, std::move(inputs), attributes, names);
  CERMET_ASSERT(outputs.size() == 1);
  return outputs.front();
}

void Graph::add_output(std::string_view output_name, ValueId id) {
  value(id);
  for (const GraphOutput& output : outputs_)
    require(output.name != output_name, "graph '{}': output '{}': expected a name of its own, found one that is taken", name, output_name);
  outputs_.push_back({std::string(output_name), id});
}

Graph Graph::from_parts(std::string name, std::vector<Value> values, std::vector<Node> nodes, std::vector<GraphOutput> outputs) {
  Graph graph;
  graph.name = std::move(name);
  graph.values_ = std::move(values);
  graph.nodes_ = std::move(nodes);
  graph.outputs_ = std::move(outputs);
  for (std::size_t i = 0; i < graph.values_.size(); ++i) graph.by_name_.emplace_back(graph.values_[i].name, static_cast<std::int32_t>(i));
  std::sort(graph.by_name_.begin(), graph.by_name_.end());
  return graph;
}

const Value& Graph::value(ValueId id) const {
  CERMET_ASSERT(id.index >= 0 && static_cast<std::size_t>(id.index) < values_.size());
  return values_[static_cast<std::size_t>(id.index)];
}

ValueId Graph::find(std::string_view value_name) const {
  const auto at = name_position(by_name_, value_name);
  return at != by_name_.end() && at->first == value_name ? ValueId{at->second} : ValueId{};
}

Problem Graph::problem_of(const Node& node, const SymbolValues& maximum) const {
  Problem problem = make_problem(definition(node.op), types_of(*this, node.inputs), node.attributes);
  problem.maximum = maximum;
  for (std::size_t i = 0; i < node.inputs.size() && i < 64; ++i)
    if (node.inputs[i] && value(node.inputs[i]).kind == ValueKind::constant) problem.constant_inputs |= std::uint64_t{1} << i;
  return problem;
}

Graph::Scope::Scope(Graph& graph, std::string_view name) : graph_(graph), previous_length_(graph.scope_.size()) { graph.scope_ = joined(graph.scope_, name); }
Graph::Scope::~Scope() { graph_.scope_.resize(previous_length_); }

}  // namespace cermet
