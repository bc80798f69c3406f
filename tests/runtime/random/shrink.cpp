#include "tests/runtime/random/shrink.hpp"

#include <optional>
#include <vector>

#include "base/error.hpp"

namespace cermet::test {
namespace {

/// The graph without an output (or -1) and without a node (or -1), whose first result becomes operand `operand` or, for
/// -1, an input; what nothing reads any more goes, too.
std::optional<Graph> without(const Graph& graph, std::int32_t output, std::int32_t node, std::int32_t operand) {
  if (node >= 0 && graph.nodes()[static_cast<std::size_t>(node)].outputs.size() != 1) operand = -1;
  std::vector<ValueId> made(graph.values().size());
  std::vector<bool> used(graph.values().size());
  for (std::size_t o = 0; o < graph.outputs().size(); ++o)
    if (static_cast<std::int32_t>(o) != output) used[graph.outputs()[o].value.at()] = true;
  for (std::size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& each = graph.nodes()[n];
    bool needed = false;
    for (const ValueId id : each.outputs) needed = needed || used[id.at()];
    if (!needed) continue;
    if (static_cast<std::int32_t>(n) == node) {
      if (operand >= 0) used[each.inputs[static_cast<std::size_t>(operand)].at()] = true;
      continue;
    }
    for (const ValueId id : each.inputs)
      if (id) used[id.at()] = true;
  }
  Graph left;
  left.name = graph.name;
  for (const SymbolRange& r : graph.ranges()) left.set_range(r.symbol, r.range);
  for (std::size_t v = 0; v < graph.values().size(); ++v) {
    const Value& value = graph.values()[v];
    if (!used[v] || value.kind == ValueKind::intermediate) continue;
    made[v] = value.kind == ValueKind::input ? left.add_input(value.name, value.type)
              : value.data()                 ? left.add_constant(value.name, *value.data())
                                             : left.add_constant(value.name, value.type);
  }
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& each = graph.nodes()[n];
    bool needed = false;
    for (const ValueId id : each.outputs) needed = needed || used[id.at()];
    if (!needed) continue;
    if (static_cast<std::int32_t>(n) == node) {
      for (const ValueId id : each.outputs)
        made[id.at()] = operand >= 0 ? made[each.inputs[static_cast<std::size_t>(operand)].at()]
                                     : left.add_input(graph.value(id).name, graph.type(id));
      continue;
    }
    std::vector<ValueId> inputs;
    std::vector<std::string> names;
    for (const ValueId id : each.inputs) inputs.push_back(id ? made[id.at()] : ValueId{});
    for (const ValueId id : each.outputs) names.push_back(graph.value(id).name);
    const std::vector<ValueId> results = left.apply_all(each.op, inputs, each.attributes, names);
    for (std::size_t o = 0; o < results.size(); ++o) made[each.outputs[o].at()] = results[o];
  }
  int outputs = 0;
  for (std::size_t o = 0; o < graph.outputs().size(); ++o) {
    if (static_cast<std::int32_t>(o) == output) continue;
    const ValueId id = made[graph.outputs()[o].value.at()];
    if (left.value(id).kind != ValueKind::intermediate) continue;
    left.add_output(graph.outputs()[o].name, id);
    ++outputs;
  }
  if (outputs == 0 || left.nodes().size() > graph.nodes().size()) return {};
  return left;
}

}  // namespace

Graph shrink(Graph graph, const std::function<bool(const Graph&)>& fails) {
  const auto take = [&](std::int32_t output, std::int32_t node, std::int32_t operand) {
    std::optional<Graph> less;
    try {
      less = without(graph, output, node, operand);
    } catch (const Error&) {  // an operand that an operator does not take
      return false;
    }
    if (!less || !fails(*less)) return false;
    graph = std::move(*less);
    return true;
  };
  const auto end_at = [&](std::size_t n) {  // the node's results are all that is wanted
    std::vector<GraphOutput> outputs;
    for (const ValueId id : graph.nodes()[n].outputs) outputs.push_back({fmt::format("y{}", outputs.size()), id});
    const Graph ended =
        Graph::from_parts(graph.name, graph.values(), graph.nodes(), std::move(outputs), graph.ranges());
    std::optional<Graph> less = without(ended, -1, -1, -1);
    if (!less || less->nodes().size() >= graph.nodes().size() || !fails(*less)) return false;
    graph = std::move(*less);
    return true;
  };
  for (bool found = true; found;) {
    found = false;
    for (std::size_t n = 0; n < graph.nodes().size() && !found; ++n) found = end_at(n);
    for (std::int32_t o = 0; o < std::ssize(graph.outputs()) && graph.outputs().size() > 1;) {
      if (take(o, -1, -1)) found = true;
      else ++o;
    }
    for (std::int32_t n = 0; n < std::ssize(graph.nodes()); ++n) {
      const Node node = graph.nodes()[static_cast<std::size_t>(n)];
      bool done = false;
      for (std::int32_t i = 0; i < std::ssize(node.inputs) && !done; ++i) {
        const ValueId id = node.inputs[static_cast<std::size_t>(i)];
        done = id && graph.type(id) == graph.type(node.outputs[0]) && take(-1, n, i);
      }
      if (done || take(-1, n, -1)) {
        found = true;
        --n;
      }
    }
  }
  return graph;
}

}  // namespace cermet::test
