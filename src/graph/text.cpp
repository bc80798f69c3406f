#include "graph/text.hpp"

#include "graph/plain_name.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

std::string value_text(const Graph& graph, ValueId id) { return id ? "%" + name_text(graph.value(id).name) : "-"; }

template <class Range, class Text>
std::string comma_separated(const Range& range, Text text) {
  std::string out;
  for (const auto& item : range) out += (out.empty() ? "" : ", ") + text(item);
  return out;
}

/// "add(%a, %b) {axis = 1}". Optional operands at the end that are not given need no mark.
std::string call_text(const Graph& graph, OpKind op, std::vector<ValueId> inputs, const Attributes& attributes) {
  const auto attribute = [](const auto& entry) { return fmt::format("{} = {}", entry.first, to_string(entry.second)); };
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  std::string text = fmt::format("{}({})", definition(op).name,
                                 comma_separated(inputs, [&](ValueId id) { return value_text(graph, id); }));
  return attributes.size() > 0 ? fmt::format("{} {{{}}}", text, comma_separated(attributes, attribute)) : text;
}

/// What follows the type of a constant that is not loaded.
std::string source_text(const Graph& graph, const Value& value) {
  if (value.data()) return fmt::format(" = {}", value.data()->to_string());
  const ConstantExpression* e = value.expression();
  if (!e) return "";
  return fmt::format(" = {}{}", call_text(graph, e->op, e->inputs, e->attributes),
                     e->output > 0 ? fmt::format(" [{}]", e->output) : "");
}

std::string range_text(const SymbolRange& r) {
  const bool ends = r.range.greatest < DimRange{}.greatest;
  return fmt::format("  symbol {} : {}..{}\n", r.symbol.name(), r.range.least,
                     ends ? std::to_string(r.range.greatest) : "");
}

std::string order_text(const Ints& order) { return order.empty() ? "" : " order " + to_string(AttributeValue(order)); }

/// An index that the graph does not have, which the verifier finds, is printed as a number.
std::string mark_text(const Graph& graph, std::int32_t mark) {
  if (mark == Node::unmarked) return "";
  if (mark == Node::excluded) return " outside";
  const auto at = static_cast<std::size_t>(mark);
  return " in " +
         (at < graph.super_kernels().size() ? name_text(graph.super_kernels()[at].name) : std::to_string(mark));
}

std::string node_text(const Graph& graph, const Node& node) {
  const auto value = [&](ValueId id) { return value_text(graph, id); };
  std::string line = fmt::format("  {} = {}", comma_separated(node.outputs, value),
                                 call_text(graph, node.op, node.inputs, node.attributes));
  line += " : " + comma_separated(node.outputs, [&](ValueId id) { return graph.type(id).to_string(); }) +
          mark_text(graph, node.super_kernel);
  return node.scope.empty() ? line + "\n" : fmt::format("{}  // {}\n", line, name_text(node.scope));
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::string text = graph.name.empty() ? "graph {\n" : fmt::format("graph {} {{\n", name_text(graph.name));
  for (const SymbolRange& range : graph.ranges()) text += range_text(range);
  for (const SuperKernel& each : graph.super_kernels())
    text += fmt::format("  super_kernel {}{}\n", name_text(each.name),
                        each.options.empty() ? "" : " " + escape(each.options));
  std::size_t declared = 0;  // inputs and constants stand where they were declared among the results
  const auto declare_until = [&](std::size_t end) {
    for (; declared < end; ++declared) {
      const Value& value = graph.values()[declared];
      if (value.kind == ValueKind::intermediate) continue;
      text += fmt::format("  {} %{} : {}{}{}\n", value.kind == ValueKind::input ? "input" : "constant",
                          name_text(value.name), value.type.to_string(), source_text(graph, value),
                          order_text(value.order));
    }
  };
  for (const Node& node : graph.nodes()) {
    if (!node.outputs.empty()) declare_until(std::max(declared, static_cast<std::size_t>(node.outputs.front().index)));
    text += node_text(graph, node);
  }
  declare_until(graph.values().size());
  for (const GraphOutput& output : graph.outputs())
    text += fmt::format("  output {} = {}{}\n", name_text(output.name), value_text(graph, output.value),
                        order_text(output.order));
  for (const GraphUpdate& update : graph.updates())
    text += fmt::format("  update {} = {}\n", value_text(graph, update.input), value_text(graph, update.value));
  return text + "}\n";
}

Subgraph make_subgraph(Graph graph) {
  std::string text = to_text(graph);
  return {std::move(text), std::make_shared<const Graph>(std::move(graph))};
}

}  // namespace cermet
