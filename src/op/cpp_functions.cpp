#include "op/cpp_functions.hpp"

#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "op/operator.hpp"

namespace cermet {
namespace {

constexpr std::size_t line_width = 150;

/// Documentation comments: the text at `indent` spaces, broken between words.
std::string cpp_comment(std::string_view text, std::size_t indent) {
  const std::string begin = std::string(indent, ' ') + "///";
  std::string out, line = begin;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    if (line.size() + 1 + end > line_width && line != begin) {
      out += line + "\n";
      line = begin;
    }
    line += ' ';
    line += text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return out + line + "\n";
}

/// A C++ string literal.
std::string cpp_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string cpp_literal(double value) {
  if (value == std::numeric_limits<double>::infinity()) return "std::numeric_limits<double>::infinity()";
  if (value == -std::numeric_limits<double>::infinity()) return "-std::numeric_limits<double>::infinity()";
  return fmt::format("{}", value);
}

std::string cpp_literal(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::max()) return "std::numeric_limits<std::int64_t>::max()";
  if (value == std::numeric_limits<std::int64_t>::min()) return "std::numeric_limits<std::int64_t>::min()";
  return std::to_string(value);
}

template <class T>
std::string cpp_list(const std::vector<T>& list) {
  std::string out = "{";
  for (const T& value : list) out += (out.size() > 1 ? ", " : "") + cpp_literal(value);
  return out + "}";
}

/// Type and default of an attribute as a member; nothing for tensors and graphs, which the C interface cannot pass.
struct CppMember {
  std::string type, fallback;
};
std::optional<CppMember> member_of(const AttributeValue& fallback) {
  const auto member = []<class T>(const T& value) -> std::optional<CppMember> {
    if constexpr (std::is_same_v<T, bool>) return CppMember{"bool", value ? "true" : "false"};
    else if constexpr (std::is_same_v<T, std::int64_t>) return CppMember{"std::int64_t", cpp_literal(value)};
    else if constexpr (std::is_same_v<T, double>) return CppMember{"double", cpp_literal(value)};
    else if constexpr (std::is_same_v<T, std::string>) return CppMember{"std::string", value.empty() ? "{}" : cpp_literal(value)};
    else if constexpr (std::is_same_v<T, Ints>) return CppMember{"std::vector<std::int64_t>", cpp_list(value)};
    else if constexpr (std::is_same_v<T, Floats>) return CppMember{"std::vector<double>", cpp_list(value)};
    else if constexpr (std::is_same_v<T, Strings>) return CppMember{"std::vector<std::string>", cpp_list(value)};
    else return std::nullopt;
  };
  return std::visit(member, fallback);
}

bool has_options(const OpDefinition& op) {
  return std::ranges::any_of(op.inputs, &OperandSpec::optional) ||
         std::ranges::any_of(op.attributes, [](const AttributeSpec& a) { return member_of(a.fallback).has_value(); });
}

std::string operand_text(const OperandSpec& spec) { return fmt::format("{}: {} {}, {}", spec.name, spec.dtypes.to_string(), spec.shape, spec.doc); }

/// Optional operands, then attributes.
std::string options_struct(const OpDefinition& op) {
  if (!has_options(op)) return "";
  std::string text = fmt::format("/// Optional operands and attributes of {}().\nstruct {}_options {{\n", op.name, op.name);
  for (const OperandSpec& spec : op.inputs)
    if (spec.optional)
      text += cpp_comment(fmt::format("{} {}: {}", spec.dtypes.to_string(), spec.shape, spec.doc), 2) + fmt::format("  tensor {} = {{}};\n", spec.name);
  for (const AttributeSpec& spec : op.attributes) {
    const auto member = member_of(spec.fallback);
    if (!member) continue;
    const std::string choices = spec.choices.empty() ? "" : fmt::format(": {}", fmt::join(spec.choices, ", "));
    text += cpp_comment(std::string(spec.doc) + choices, 2);
    text += fmt::format("  {} {} = {};\n", member->type, spec.name, member->fallback);
  }
  return text + "};\n";
}

bool returns_list(const OpDefinition& op) { return !op.outputs.empty() && op.outputs.back().variadic; }
bool returns_struct(const OpDefinition& op) { return op.outputs.size() > 1 && !returns_list(op); }

std::string results_struct(const OpDefinition& op) {
  if (!returns_struct(op)) return "";
  std::string text = fmt::format("/// Results of {}(); empty where a call has none of the kind.\nstruct {}_results {{\n", op.name, op.name);
  for (const OperandSpec& spec : op.outputs)
    text += cpp_comment(fmt::format("{}: {}", spec.shape, spec.doc), 2) + fmt::format("  tensor {} = {{}};\n", spec.name);
  return text + "};\n";
}

std::string function_comment(const OpDefinition& op) {
  std::string text = cpp_comment(fmt::format("{}.", op.summary), 0) + "///\n" + cpp_comment(op.semantics, 0) + "///\n";
  for (const OperandSpec& spec : op.inputs)
    if (!spec.optional) text += cpp_comment("- " + operand_text(spec), 0);
  if (!returns_struct(op)) text += cpp_comment("- returns " + operand_text(op.outputs.front()), 0);
  return text;
}

std::string parameters(const OpDefinition& op) {
  std::string text;
  for (const OperandSpec& spec : op.inputs)
    if (!spec.optional) text += fmt::format("const {}& {}, ", spec.variadic ? "std::vector<tensor>" : "tensor", spec.name);
  if (has_options(op)) text += fmt::format("const {}_options& options = {{}}, ", op.name);
  return text + "const call_options& call = {}";
}

std::string body(const OpDefinition& op) {
  std::string text = fmt::format("  static thread_local face::short_form form(\"{}\");\n  face::call_arguments operands;\n", op.name), attributes;
  for (const OperandSpec& spec : op.inputs) text += fmt::format("  operands.add({}{});\n", spec.optional ? "options." : "", spec.name);
  for (const AttributeSpec& spec : op.attributes) {
    if (!member_of(spec.fallback)) continue;
    std::string value = fmt::format("options.{}", spec.name);
    if (std::holds_alternative<Strings>(spec.fallback)) {
      text += fmt::format("  const face::texts {}({});\n", spec.name, value);
      value = spec.name;
    }
    attributes += fmt::format("{}face::value(\"{}\", {})", attributes.empty() ? "" : ", ", spec.name, value);
  }
  std::string call = "form(operands, nullptr, 0, call)";
  if (!attributes.empty()) {
    text += fmt::format("  const cermet_attribute attributes[] = {{{}}};\n", attributes);
    call = "form(operands, attributes, sizeof attributes / sizeof *attributes, call)";
  }
  if (returns_list(op)) return text + fmt::format("  return {};\n", call);
  if (!returns_struct(op)) return text + fmt::format("  return face::result({}, 0);\n", call);
  text += fmt::format("  const std::vector<tensor> results = {};\n  return {{", call);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) text += fmt::format("{}face::result(results, {})", i ? ", " : "", i);
  return text + "};\n";
}

}  // namespace

std::string cpp_function(const OpDefinition& op) {
  const std::string type = returns_list(op) ? "std::vector<tensor>" : returns_struct(op) ? fmt::format("{}_results", op.name) : "tensor";
  return options_struct(op) + results_struct(op) + function_comment(op) + fmt::format("inline {} {}({}) {{\n{}}}\n", type, op.name, parameters(op), body(op));
}

std::string cpp_functions_header() {
  std::string text =
      "// Cermet: a function for every operator. Generated from the operators' schemas by the build; do not edit.\n"
      "//\n"
      "//   auto y = cermet::rms_norm(x, {weight, 1e-5});             // on the CPU, in new memory\n"
      "//   cermet::rms_norm(x, {weight, 1e-5}, {&gpu, {y}, stream}); // on a handle, into y, on a stream\n"
      "//\n"
      "// Required operands are parameters, in the schema's order; optional ones and attributes are members of a struct with the schema's defaults. What a "
      "call\n"
      "// chooses is kept for the thread's next calls with the same handle and attributes. Errors throw cermet::error.\n"
      "#ifndef CERMET_OPS_HPP_\n#define CERMET_OPS_HPP_\n\n#include <cermet/short_form.hpp>\n\n#include <limits>\n\nnamespace cermet {\n";
  for (const OpDefinition& op : all_operators()) text += "\n" + cpp_function(op);
  return text + "\n}  // namespace cermet\n\n#endif  // CERMET_OPS_HPP_\n";
}

}  // namespace cermet
