#include "graph/editor.hpp"

#include <algorithm>

#include "op/schema/operator.hpp"

namespace cermet {

GraphEditor::GraphEditor(const Graph& graph)
    : name_(graph.name),
      ranges_(graph.ranges()),
      super_kernels_(graph.super_kernels()),
      values_(graph.values()),
      outputs_(graph.outputs()),
      updates_(graph.updates()),
      kept_(graph.kept_values()),
      original_values_(graph.values().size()) {
  readers_.resize(values_.size());
  for (std::size_t v = 0; v < values_.size(); ++v) names_.add(values_[v].name, {static_cast<std::int32_t>(v)});
  for (std::size_t o = 0; o < kept_.size(); ++o) readers_.at(kept_[o].at()).outputs.push_back(o);
  for (const Node& node : graph.nodes()) {
    const auto n = static_cast<NodeId>(nodes_.size());
    nodes_.push_back({node, std::vector<std::int32_t>(node.inputs.size()), true});
    links_.push_back({n - 1, n + 1});
    has_marks_ = has_marks_ || node.super_kernel != Node::unmarked;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) add_use(n, i);
  }
  size_ = nodes_.size();
  if (nodes_.empty()) return;
  first_ = 0;
  last_ = static_cast<NodeId>(nodes_.size()) - 1;
  links_.back().next = no_node;
}

const Node& GraphEditor::node(NodeId n) const {
  CERMET_ASSERT(has(n));
  return nodes_[static_cast<std::size_t>(n)].node;
}

GraphEditor::Focus::Focus(GraphEditor& editor, NodeId n) : editor_(editor) {
  if (editor.has_marks_) editor.focus_ = editor.node(n).super_kernel;
}
GraphEditor::Focus::~Focus() {
  editor_.focus_.reset();
  editor_.filtered_uses_.clear();
}

std::span<const Use> GraphEditor::seen_uses(ValueId id) const {
  const std::vector<Use>& all = readers_.at(id.at()).uses;
  if (std::ranges::all_of(all, [&](const Use& use) { return is_seen(use.node); })) return all;
  std::vector<Use>& filtered = filtered_uses_.emplace_back();
  std::ranges::copy_if(all, std::back_inserter(filtered), [&](const Use& use) { return is_seen(use.node); });
  return filtered;
}

void GraphEditor::add_use(NodeId n, std::size_t operand) {
  const ValueId id = slot(n).node.inputs[operand];
  if (!id) return;
  std::vector<Use>& uses = readers_.at(id.at()).uses;
  slot(n).place[operand] = static_cast<std::int32_t>(uses.size());
  uses.push_back({n, static_cast<std::int32_t>(operand)});
}

/// The last use takes the place of the one that goes.
void GraphEditor::remove_use(NodeId n, std::size_t operand) {
  const ValueId id = slot(n).node.inputs[operand];
  if (!id) return;
  std::vector<Use>& uses = readers_[id.at()].uses;
  const auto place = static_cast<std::size_t>(slot(n).place[operand]);
  const Use moved = uses.back();
  uses[place] = moved;
  slot(moved.node).place[static_cast<std::size_t>(moved.operand)] = static_cast<std::int32_t>(place);
  uses.pop_back();
}

std::vector<std::optional<TensorType>> GraphEditor::types_of(const std::vector<ValueId>& ids) const {
  std::vector<std::optional<TensorType>> types;
  for (const ValueId id : ids) types.push_back(id ? std::optional(value(id).type) : std::nullopt);
  return types;
}

ValueId GraphEditor::add_value(std::string name, TensorType type, ValueKind kind, ConstantSource source) {
  const ValueId id{static_cast<std::int32_t>(values_.size())};
  require(names_.add(name, id), "graph '{}': value '{}': expected a name of its own, found one that is taken", name_,
          name);
  values_.push_back({std::move(name), std::move(type), kind, no_node, std::move(source)});
  readers_.emplace_back();
  return id;
}

ValueId GraphEditor::add_constant_value(std::string_view name, TensorType type, ConstantSource source) {
  const std::string no_suffix[] = {""};
  return add_value(names_.fresh(std::string(name), no_suffix).front(), std::move(type), ValueKind::constant,
                   std::move(source));
}

ValueId GraphEditor::add_constant(std::string_view name, TensorData data) {
  TensorType type = data.type();
  return add_constant_value(name, std::move(type), std::move(data));
}

ValueId GraphEditor::add_constant(std::string_view name, ConstantExpression expression) {
  for (const ValueId id : expression.inputs)
    if (id && value(id).kind != ValueKind::constant)
      fail(Status::invalid_argument, "constant '{}': expected constants to compute it of, found '{}'", name,
           value(id).name);
  const Problem problem = make_problem(definition(expression.op), types_of(expression.inputs), expression.attributes);
  const auto output = static_cast<std::size_t>(expression.output);
  return add_constant_value(name, problem.outputs.at(output), std::move(expression));
}

std::vector<ValueId> GraphEditor::insert(NodeId before, NodeId next, NodeId place, OpKind op,
                                         std::vector<ValueId> inputs, const Attributes& attributes,
                                         std::string_view scope, const std::vector<std::string>& names) {
  const OpDefinition& definition = cermet::definition(op);
  const Problem problem = make_problem(definition, types_of(inputs), attributes);
  const std::vector<std::string> made = result_names(names_, scope, definition, problem.outputs.size(), names);
  const auto n = static_cast<NodeId>(nodes_.size());
  const std::int32_t mark = focus_ ? *focus_ : place == no_node ? Node::unmarked : this->node(place).super_kernel;
  Node node{op, std::move(inputs), {}, attributes, std::string(scope), mark};
  node.inputs.resize(problem.inputs.size());
  for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
    node.outputs.push_back(add_value(made[o], problem.outputs[o], ValueKind::intermediate, {}));
    values_.back().producer = n;
  }
  nodes_.push_back({std::move(node), std::vector<std::int32_t>(problem.inputs.size()), true});
  links_.push_back({before, next});
  (before == no_node ? first_ : link(before).next) = n;
  (next == no_node ? last_ : link(next).before) = n;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) add_use(n, i);
  ++size_;
  return nodes_.back().node.outputs;
}

std::vector<ValueId> GraphEditor::insert_before(NodeId place, OpKind op, std::vector<ValueId> inputs,
                                                const Attributes& attributes, std::string_view scope,
                                                const std::vector<std::string>& names) {
  CERMET_ASSERT(has(place));
  return insert(link(place).before, place, place, op, std::move(inputs), attributes, scope, names);
}

std::vector<ValueId> GraphEditor::insert_after(NodeId place, OpKind op, std::vector<ValueId> inputs,
                                               const Attributes& attributes, std::string_view scope,
                                               const std::vector<std::string>& names) {
  CERMET_ASSERT(place == no_node || has(place));
  return insert(place == no_node ? last_ : place, place == no_node ? no_node : next(place), place, op,
                std::move(inputs), attributes, scope, names);
}

void GraphEditor::require_same_type(ValueId from, ValueId to) const {
  if (value(from).type != value(to).type)
    fail(Status::invalid_argument, "graph '{}': value '{}' in place of '{}': expected {}, found {}", name_,
         value(to).name, value(from).name, value(from).type.to_string(), value(to).type.to_string());
}

void GraphEditor::set_operand(Use use, ValueId to) {
  CERMET_ASSERT(has(use.node));
  const auto operand = static_cast<std::size_t>(use.operand);
  ValueId& id = slot(use.node).node.inputs.at(operand);
  require_same_type(id, to);
  remove_use(use.node, operand);
  id = to;
  add_use(use.node, operand);
}

void GraphEditor::replace_uses(ValueId from, ValueId to, NodeId except) {
  require_same_type(from, to);
  if (from == to) return;
  const std::vector<Use> uses = readers_[from.at()].uses;
  for (const Use use : uses)
    if (use.node != except) set_operand(use, to);
  Readers &old = readers_[from.at()], &now = readers_[to.at()];
  for (const std::size_t o : old.outputs) kept_[o] = to;
  now.outputs.insert(now.outputs.end(), old.outputs.begin(), old.outputs.end());
  old.outputs.clear();
}

void GraphEditor::erase(NodeId n) {
  CERMET_ASSERT(has(n));
  for (const ValueId id : node(n).outputs) {
    const Readers& readers = readers_[id.at()];
    require(readers.outputs.empty(),
            "graph '{}': value '{}': expected one that nothing reads, found an output of the graph", name_,
            value(id).name);
    if (!readers.uses.empty())
      fail(Status::invalid_argument, "graph '{}': value '{}': expected one that nothing reads, found an operand of {}",
           name_, value(id).name, definition(node(readers.uses[0].node).op).name);
  }
  for (std::size_t i = 0; i < slot(n).node.inputs.size(); ++i) remove_use(n, i);
  for (const ValueId id : node(n).outputs) {
    names_.remove(value(id).name);
    values_[id.at()].producer = no_node;
  }
  const Link around = link(n);
  (around.before == no_node ? first_ : link(around.before).next) = around.next;
  (around.next == no_node ? last_ : link(around.next).before) = around.before;
  slot(n).present = false;
  --size_;
}

void GraphEditor::replace(std::span<const NodeId> nodes, std::span<const std::pair<ValueId, ValueId>> results) {
  for (const auto& [from, to] : results) replace_uses(from, to);
  // Readers first: an order in which nodes of the set can go.
  std::vector<NodeId> left(nodes.begin(), nodes.end());
  const auto unread = [&](NodeId n) {
    return std::ranges::all_of(node(n).outputs, [&](ValueId id) { return uses(id).empty() && !is_output(id); });
  };
  while (!left.empty()) {
    const auto at = std::ranges::find_if(left, unread);
    erase(at == left.end() ? left.front() : *at);  // the first says who reads it
    left.erase(at);
  }
}

void GraphEditor::rename(ValueId id, std::string_view name) {
  require(names_.add(std::string(name), id),
          "graph '{}': value '{}': expected a name of its own, found one that is taken", name_, name);
  names_.remove(value(id).name);
  values_[id.at()].name = name;
}

}  // namespace cermet
