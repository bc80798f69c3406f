#include "fuse/nodes.hpp"

#include <algorithm>

namespace cermet {

Attributes known_attributes(const Attributes& attributes, OpKind op) {
  Attributes own;
  for (const AttributeSpec& spec : definition(op).attributes)
    if (const AttributeValue* value = attributes.find(spec.name)) own.set(spec.name, *value);
  return own;
}

Problem problem_of(const Graph& graph, const Node& node, const SymbolValues& maximum, const Target* target) {
  Problem problem = graph.problem_of(node, maximum);
  problem.target = target;
  return problem;
}

Problem problem_of(OpKind op, std::span<const TensorType> inputs, const Attributes& attributes,
                   const SymbolValues& maximum, const Target* target) {
  Problem problem = make_problem(definition(op), {inputs.begin(), inputs.end()}, attributes);
  problem.maximum = maximum;
  problem.target = target;
  return problem;
}

bool is_output(const Graph& graph, ValueId value) {
  return std::ranges::find(graph.outputs(), value, &GraphOutput::value) != graph.outputs().end() ||
         std::ranges::find(graph.updates(), value, &GraphUpdate::value) != graph.updates().end();
}

}  // namespace cermet
