#include "op/schema/cpp_functions.hpp"

#include "op/schema/cpp_text.hpp"

namespace cermet {
namespace {

std::string parameters(const OpDefinition& op) {
  std::string text;
  for (const OperandSpec& spec : op.inputs)
    if (!spec.optional)
      text += fmt::format("const {}& {}, ", spec.variadic ? "std::vector<tensor>" : "tensor", spec.name);
  if (has_options(op)) text += fmt::format("const {}_options& options = {{}}, ", op.name);
  return text + "const call_options& call = {}";
}

std::string body(const OpDefinition& op) {
  std::string text =
      fmt::format("  static thread_local face::short_form form(\"{}\");\n  face::call_arguments operands;\n", op.name);
  for (const OperandSpec& spec : op.inputs)
    text += fmt::format("  operands.add({}{});\n", spec.optional ? "options." : "", spec.name);
  const CppAttributes attributes = cpp_attributes(op, "  ");
  text += attributes.lines;
  std::string call = "form(operands, nullptr, 0, call)";
  if (!attributes.list.empty()) {
    text += fmt::format("  const cermet_attribute attributes[] = {{{}}};\n", attributes.list);
    call = "form(operands, attributes, sizeof attributes / sizeof *attributes, call)";
  }
  if (returns_list(op)) return text + fmt::format("  return {};\n", call);
  if (!returns_struct(op)) return text + fmt::format("  return face::result({}, 0);\n", call);
  text += fmt::format("  const std::vector<tensor> results = {};\n  return {{", call);
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    text += fmt::format("{}face::result(results, {})", i ? ", " : "", i);
  return text + "};\n";
}

}  // namespace

std::string cpp_function(const OpDefinition& op) {
  const std::string type = returns_list(op)     ? "std::vector<tensor>"
                           : returns_struct(op) ? fmt::format("{}_results", op.name)
                                                : "tensor";
  return cpp_options(op, "tensor") + cpp_results(op, "tensor") + cpp_operator_comment(op, 0) +
         fmt::format("inline {} {}({}) {{\n{}}}\n", type, op.name, parameters(op), body(op));
}

std::string cpp_functions_header() {
  std::string text =
      "// Cermet: a function for every operator. Generated from the operators' schemas by the build; do not edit.\n"
      "//\n"
      "//   auto y = cermet::rms_norm(x, {weight, 1e-5});             // on the CPU, in new memory\n"
      "//   cermet::rms_norm(x, {weight, 1e-5}, {&gpu, {y}, stream}); // on a handle, into y, on a stream\n"
      "//\n"
      "// Required operands are parameters, in the schema's order; optional ones and attributes are members of a "
      "struct with the schema's defaults. What a "
      "call\n"
      "// chooses is kept for the thread's next calls with the same handle and attributes. Errors throw "
      "cermet::error.\n"
      "#ifndef CERMET_OPS_HPP_\n#define CERMET_OPS_HPP_\n\n#include <cermet/short_form.hpp>\n\n#include "
      "<limits>\n\nnamespace cermet {\n";
  for (const OpDefinition& op : all_operators()) text += "\n" + cpp_function(op);
  return text + "\n}  // namespace cermet\n\n#endif  // CERMET_OPS_HPP_\n";
}

}  // namespace cermet
