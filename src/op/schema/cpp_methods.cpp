#include "op/schema/cpp_methods.hpp"

#include "op/schema/cpp_text.hpp"

namespace cermet {
namespace {

std::string method_parameters(const OpDefinition& op) {
  std::string text;
  for (const OperandSpec& spec : op.inputs) {
    if (spec.optional) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", spec.variadic ? "const std::vector<value>&" : "value",
                        spec.name);
  }
  if (has_options(op))
    text += fmt::format("{}const nodes::{}_options& options = {{}}", text.empty() ? "" : ", ", op.name);
  return text;
}

std::string method_body(const OpDefinition& op) {
  std::string text = "    face::node_operands operands;\n";
  for (const OperandSpec& spec : op.inputs)
    text += fmt::format("    operands.add({}{});\n", spec.optional ? "options." : "", spec.name);
  const CppAttributes attributes = cpp_attributes(op, "    ");
  text += attributes.lines;
  std::string call = fmt::format("add_node(\"{}\", operands.list, nullptr, 0)", op.name);
  if (!attributes.list.empty()) {
    text += fmt::format("    const cermet_attribute attributes[] = {{{}}};\n", attributes.list);
    call = fmt::format("add_node(\"{}\", operands.list, attributes, sizeof attributes / sizeof *attributes)", op.name);
  }
  if (returns_list(op)) return text + fmt::format("    return {};\n", call);
  if (!returns_struct(op)) return text + fmt::format("    return face::node_result({}, 0);\n", call);
  text += fmt::format("    const std::vector<value> results = {};\n    return {{", call);
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    text += fmt::format("{}face::node_result(results, {})", i ? ", " : "", i);
  return text + "};\n";
}

}  // namespace

std::string cpp_node_structs(const OpDefinition& op) {
  return cpp_options(op, "value", "graph.") + cpp_results(op, "value", "graph.");
}

std::string cpp_method(const OpDefinition& op) {
  const std::string type = returns_list(op)     ? "std::vector<value>"
                           : returns_struct(op) ? fmt::format("nodes::{}_results", op.name)
                                                : "value";
  return cpp_operator_comment(op, 2) +
         fmt::format("  {} {}({}) {{\n{}  }}\n", type, op.name, method_parameters(op), method_body(op));
}

std::string cpp_methods_header() {
  std::string text =
      "// Cermet: a method of graphs for every operator. Generated from the operators' schemas by the build; do not "
      "edit. Included by cermet/graph.hpp.\n"
      "//\n"
      "//   auto y = graph.rms_norm(x, {weight, 1e-5});\n"
      "//\n"
      "// Required operands are parameters, in the schema's order; optional ones and attributes are members of a "
      "struct with the schema's defaults. Errors "
      "throw\n"
      "// cermet::error.\n"
      "#ifndef CERMET_GRAPH_OPS_HPP_\n#define CERMET_GRAPH_OPS_HPP_\n\n#include <cermet/node.hpp>\n\n#include "
      "<limits>\n\nnamespace cermet {\n\n"
      "/// What operators take and give in graphs.\nnamespace nodes {\n";
  for (const OpDefinition& op : all_operators())
    if (const std::string structs = cpp_node_structs(op); !structs.empty()) text += "\n" + structs;
  text +=
      "\n}  // namespace nodes\n\n/// A method for every operator: adds a node and gives its results.\nclass "
      "graph_operators {\n public:\n"
      "  virtual ~graph_operators() = default;\n";
  for (const OpDefinition& op : all_operators()) text += "\n" + cpp_method(op);
  return text +
         "\n protected:\n  virtual std::vector<value> add_node(const char* op, const std::vector<cermet_value>& "
         "inputs, const cermet_attribute* attributes,\n"
         "                                      std::size_t count) = 0;\n};\n\n}  // namespace cermet\n\n#endif  // "
         "CERMET_GRAPH_OPS_HPP_\n";
}

}  // namespace cermet
