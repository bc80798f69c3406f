// From the editor's lists back to a graph.
#include <algorithm>
#include <queue>

#include "graph/editor.hpp"
#include "graph/memory.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
/// Takes again and again the first node, in the order of the list, of which nothing that must run earlier is left.
std::vector<NodeId> GraphEditor::in_runnable_order() const {
  std::vector<std::int32_t> position(nodes_.size(), -1), waits(nodes_.size());
  std::vector<std::vector<NodeId>> followers(nodes_.size());
  std::vector<NodeId> list;
  for (NodeId n = first_; n != no_node; n = next(n)) {
    position[static_cast<std::size_t>(n)] = static_cast<std::int32_t>(list.size());
    list.push_back(n);
  }
  const auto follows = [&](NodeId before, NodeId n) {
    followers[static_cast<std::size_t>(before)].push_back(n);
    ++waits[static_cast<std::size_t>(n)];
  };
  /// Whoever reads a value, or a view of it, runs before the node that overwrites it.
  const auto readers_run_before = [&](ValueId overwritten, NodeId writer) {
    std::vector<ValueId> values{overwritten};
    while (!values.empty()) {
      const ValueId id = values.back();
      values.pop_back();
      for (const Use use : uses(id)) {
        if (use.node == writer) continue;
        follows(use.node, writer);
        if (use.operand == 0 && definition(node(use.node).op).is_view)
          values.insert(values.end(), node(use.node).outputs.begin(), node(use.node).outputs.end());
      }
    }
  };
  for (const NodeId n : list) {
    for (const ValueId id : node(n).inputs)
      if (id && producer(id) != no_node) follows(producer(id), n);
    for (std::size_t o = 0; o < node(n).outputs.size(); ++o)
      if (const ValueId shared = overwritten_by(node(n), o)) readers_run_before(shared, n);
  }
  using Entry = std::pair<std::int32_t, NodeId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto ready_if_free = [&](NodeId n) {
    if (waits[static_cast<std::size_t>(n)] == 0) ready.push({position[static_cast<std::size_t>(n)], n});
  };
  for (const NodeId n : list) ready_if_free(n);
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const NodeId n = ready.top().second;
    ready.pop();
    order.push_back(n);
    for (const NodeId follower : followers[static_cast<std::size_t>(n)]) {
      --waits[static_cast<std::size_t>(follower)];
      ready_if_free(follower);
    }
  }
  if (order.size() == list.size()) return order;
  const NodeId stuck = *std::ranges::find_if(list, [&](NodeId n) { return waits[static_cast<std::size_t>(n)] > 0; });
  fail(Status::invalid_argument,
       "graph '{}': {}value '{}': expected an order in which nodes can run, found none: it depends on itself, or on "
       "memory after an update",
       name_, node(stuck).scope.empty() ? "" : node(stuck).scope + ": ",
       node(stuck).outputs.empty() ? "" : value(node(stuck).outputs[0]).name);
}

Graph GraphEditor::finish() const {
  const std::vector<NodeId> order = in_runnable_order();
  std::vector<bool> live(values_.size());
  const auto read = [&](ValueId id) {
    if (id) live[id.at()] = true;
  };
  for (const NodeId n : order) std::ranges::for_each(node(n).inputs, read);
  std::ranges::for_each(kept_, read);
  for (std::size_t v = values_.size(); v-- > 0;) {  // expressions read earlier values
    if (values_[v].kind == ValueKind::input) live[v] = true;
    if (live[v] && values_[v].expression()) std::ranges::for_each(values_[v].expression()->inputs, read);
  }

  std::vector<Value> values;
  std::vector<ValueId> moved(values_.size());
  const auto emit = [&](ValueId id, NodeId producer) {
    moved[id.at()] = {static_cast<std::int32_t>(values.size())};
    values.push_back(value(id));
    values.back().producer = producer;
    if (auto* expression = std::get_if<ConstantExpression>(&values.back().source))
      for (ValueId& input : expression->inputs)
        if (input) input = moved[input.at()];
  };
  const auto emit_constant = [&](auto self, ValueId id) -> void {
    if (!id || moved[id.at()] || value(id).kind == ValueKind::intermediate) return;
    if (value(id).expression())
      for (const ValueId input : value(id).expression()->inputs) self(self, input);
    emit(id, no_node);
  };
  // Inputs and constants stay where they were declared among the results; new ones come before their first reader.
  std::size_t declared = 0;
  const auto declare_until = [&](std::size_t end) {
    for (; declared < end; ++declared)
      if (live[declared] && values_[declared].kind != ValueKind::intermediate)
        emit_constant(emit_constant, {static_cast<std::int32_t>(declared)});
  };
  std::vector<Node> nodes;
  for (const NodeId n : order) {
    const Node& from = node(n);
    if (!from.outputs.empty() && from.outputs.front().at() < original_values_)
      declare_until(std::max(declared, from.outputs.front().at()));
    for (const ValueId id : from.inputs) emit_constant(emit_constant, id);
    for (const ValueId id : from.outputs) emit(id, static_cast<NodeId>(nodes.size()));
    nodes.push_back(from);
    for (ValueId& id : nodes.back().inputs)
      if (id) id = moved[id.at()];
    for (ValueId& id : nodes.back().outputs) id = moved[id.at()];
  }
  declare_until(values_.size());
  std::vector<GraphOutput> outputs = outputs_;
  std::vector<GraphUpdate> updates = updates_;
  for (std::size_t o = 0; o < outputs.size(); ++o) outputs[o].value = moved[kept_[o].at()];
  for (std::size_t u = 0; u < updates.size(); ++u)
    updates[u] = {moved[updates[u].input.at()], moved[kept_[outputs.size() + u].at()]};
  return Graph::from_parts(name_, std::move(values), std::move(nodes), std::move(outputs), ranges_, super_kernels_,
                           std::move(updates));
}

}  // namespace cermet
