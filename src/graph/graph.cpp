#include "graph/graph.hpp"

#include <algorithm>

namespace cermet {
namespace {

std::string joined(std::string_view scope, std::string_view name) { return scope.empty() ? std::string(name) : fmt::format("{}.{}", scope, name); }

std::vector<std::optional<TensorType>> types_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::optional<TensorType>> types;
  for (const ValueId id : ids) types.push_back(id ? std::optional(graph.type(id)) : std::nullopt);
  return types;
}

}  // namespace

ValueId Graph::add_value(std::string value_name, TensorType type, ValueKind kind) {
  require(!value_name.empty(), "graph '{}': expected a name for every value, found an empty one", name);
  const ValueId id{static_cast<std::int32_t>(values_.size())};
  const bool added = by_name_.try_emplace(value_name, id).second;
  require(added, "graph '{}': value '{}': expected a name of its own, found one that is taken", name, value_name);
  values_.push_back({std::move(value_name), std::move(type), kind, -1});
  uses_.emplace_back();
  return id;
}

ValueId Graph::add_input(std::string_view value_name, TensorType type) { return add_value(std::string(value_name), std::move(type), ValueKind::input); }

ValueId Graph::add_constant(std::string_view value_name, TensorType type) {
  require(type.is_constant(), "graph '{}': constant '{}': expected constant dimensions, found {}", name, value_name, type.to_string());
  return add_value(std::string(value_name), std::move(type), ValueKind::constant);
}

std::vector<std::string> Graph::fresh_names(const std::string& base, std::span<const std::string> suffixes) {
  // Results of one node share its number: "attention.rope.2.q", "attention.rope.2.k". Names are never given back, so the search goes on where it ended.
  int& number = next_number_[base + suffixes.front()];
  for (;; ++number) {
    std::vector<std::string> made;
    for (const std::string& suffix : suffixes) made.push_back(number == 0 ? base + suffix : fmt::format("{}.{}{}", base, number + 1, suffix));
    if (std::none_of(made.begin(), made.end(), [&](const std::string& m) { return static_cast<bool>(find(m)); })) return made;
  }
}

std::vector<std::string> Graph::output_names(const OpDefinition& op, std::size_t count, const std::vector<std::string>& names) {
  require(names.empty() || names.size() == count, "{}: expected {} names for the results, found {}", op.name, count, names.size());
  if (count == 0 || (!names.empty() && !names.front().empty())) return names;
  std::vector<std::string> suffixes;
  for (std::size_t o = 0; o < count; ++o) {
    const bool named = o < op.outputs.size() && !op.outputs[o].variadic;
    suffixes.push_back(count == 1 ? "" : fmt::format(".{}", named ? std::string(op.outputs[o].name) : std::to_string(o)));
  }
  return fresh_names(joined(scope_, op.name), suffixes);
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
  note_uses(node, static_cast<std::int32_t>(nodes_.size()));
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
  const bool added = output_names_.emplace(output_name).second;
  require(added, "graph '{}': output '{}': expected a name of its own, found one that is taken", name, output_name);
  outputs_.push_back({std::string(output_name), id});
}

Graph Graph::from_parts(std::string name, std::vector<Value> values, std::vector<Node> nodes, std::vector<GraphOutput> outputs) {
  Graph graph;
  graph.name = std::move(name);
  graph.values_ = std::move(values);
  graph.nodes_ = std::move(nodes);
  graph.outputs_ = std::move(outputs);
  for (std::size_t i = 0; i < graph.values_.size(); ++i) graph.by_name_.try_emplace(graph.values_[i].name, ValueId{static_cast<std::int32_t>(i)});
  for (const GraphOutput& output : graph.outputs_) graph.output_names_.insert(output.name);
  graph.uses_.resize(graph.values_.size());
  for (std::size_t n = 0; n < graph.nodes_.size(); ++n) graph.note_uses(graph.nodes_[n], static_cast<std::int32_t>(n));
  return graph;
}

void Graph::note_uses(const Node& node, std::int32_t position) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (const ValueId id = node.inputs[i]; id && static_cast<std::size_t>(id.index) < uses_.size())  // parts are not verified yet
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

ValueId Graph::find(std::string_view value_name) const {
  const auto at = by_name_.find(value_name);
  return at != by_name_.end() ? at->second : ValueId{};
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
