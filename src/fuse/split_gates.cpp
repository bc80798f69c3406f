#include "fuse/split_gates.hpp"

#include "graph/editor.hpp"
#include "op/operator.hpp"

namespace cermet {
namespace {

constexpr std::size_t smooth = 1, scale = 2;

/// Those of the attributes that the operator knows.
Attributes known(const Attributes& attributes, OpKind op) {
  Attributes some;
  for (const AttributeSpec& spec : definition(op).attributes)
    if (const AttributeValue* value = attributes.find(spec.name)) some.set(spec.name, *value);
  return some;
}

Attributes activation_of(const Node& node) {
  Attributes attributes = known(node.attributes, OpKind::silu_and_mul);
  attributes.set("out_dtype", std::string("f32"));
  return attributes;
}

/// The product before a gate and the activation alone.
bool is_taken(const Graph& graph, const Node& gate, const SymbolValues& maximum, const Target* target, FunctionRef<bool(const Region& region)> takes) {
  const ValueId x = gate.inputs[0];
  const std::int32_t producer = graph.value(x).producer;
  if (producer < 0 || graph.uses(x).size() != 1 || graph.nodes()[static_cast<std::size_t>(producer)].op != OpKind::grouped_linear) return false;
  if (graph.value(x).type.dtype != DType::f32) return false;
  for (const GraphOutput& output : graph.outputs())
    if (output.value == x) return false;
  Problem product = graph.problem_of(graph.nodes()[static_cast<std::size_t>(producer)], maximum);
  product.target = target;
  Region region(std::move(product));
  Problem activation = make_problem(definition(OpKind::silu_and_mul), {graph.value(x).type}, activation_of(gate));
  activation.maximum = maximum;
  activation.target = target;
  region.nodes.push_back({std::move(activation), {RegionInput::inside(0, 0, Rounding::strict)}});
  region.results = {{1, 0}};
  return takes(region);
}

}  // namespace

SplitGates split_gates(const Graph& graph, const SymbolValues& maximum, const Target* target, FunctionRef<bool(const Region& region)> takes) {
  GraphEditor editor(graph);
  std::size_t count = 0;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    if (node.op != OpKind::silu_and_mul_quant || (node.inputs.size() > scale && node.inputs[scale])) continue;
    if (!is_taken(graph, node, maximum, target, takes)) continue;
    const auto place = static_cast<NodeId>(n);
    const std::vector<ValueId> y = editor.insert_before(place, OpKind::silu_and_mul, {node.inputs[0]}, activation_of(node), node.scope);
    std::vector<ValueId> rows = y;
    if (node.inputs.size() > smooth) rows.push_back(node.inputs[smooth]);
    const std::vector<ValueId> quantized = editor.insert_before(place, OpKind::dynamic_quant, rows, known(node.attributes, OpKind::dynamic_quant), node.scope);
    std::vector<std::pair<ValueId, ValueId>> results;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) results.emplace_back(node.outputs[i], quantized[i]);
    editor.replace(std::span(&place, 1), results);
    ++count;
  }
  return {count == 0 ? graph : editor.finish(), count};
}

}  // namespace cermet
