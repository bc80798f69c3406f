#include "op/schema/cpp_text.hpp"

#include <algorithm>
#include <limits>

#include "base/text.hpp"

namespace cermet {
namespace {

constexpr std::size_t cpp_line_width = 150;

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

}  // namespace

std::string cpp_comment(std::string_view text, std::size_t indent) {
  const std::string begin = std::string(indent, ' ') + "///";
  std::string out, line = begin;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    if (line.size() + 1 + end > cpp_line_width && line != begin) {
      out += line + "\n";
      line = begin;
    }
    line += ' ';
    line += text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return out + line + "\n";
}

std::optional<CppMember> member_of(const AttributeValue& fallback) {
  const auto member = []<class T>(const T& value) -> std::optional<CppMember> {
    if constexpr (std::is_same_v<T, bool>) return CppMember{"bool", value ? "true" : "false"};
    else if constexpr (std::is_same_v<T, std::int64_t>) return CppMember{"std::int64_t", cpp_literal(value)};
    else if constexpr (std::is_same_v<T, double>) return CppMember{"double", cpp_literal(value)};
    else if constexpr (std::is_same_v<T, std::string>)
      return CppMember{"std::string", value.empty() ? "{}" : cpp_literal(value)};
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

bool returns_list(const OpDefinition& op) { return !op.outputs.empty() && op.outputs.back().variadic; }
bool returns_struct(const OpDefinition& op) { return op.outputs.size() > 1 && !returns_list(op); }

std::string cpp_options(const OpDefinition& op, std::string_view type, std::string_view prefix) {
  if (!has_options(op)) return "";
  std::string text =
      fmt::format("/// Optional operands and attributes of {}{}().\nstruct {}_options {{\n", prefix, op.name, op.name);
  for (const OperandSpec& spec : op.inputs)
    if (spec.optional)
      text += cpp_comment(fmt::format("{} {}: {}", spec.dtypes.to_string(), spec.shape, spec.doc), 2) +
              fmt::format("  {} {} = {{}};\n", type, spec.name);
  for (const AttributeSpec& spec : op.attributes) {
    const auto member = member_of(spec.fallback);
    if (!member) continue;
    const std::string choices = spec.choices.empty() ? "" : fmt::format(": {}", fmt::join(spec.choices, ", "));
    text += cpp_comment(std::string(spec.doc) + choices, 2);
    text += fmt::format("  {} {} = {};\n", member->type, spec.name, member->fallback);
  }
  return text + "};\n";
}

std::string cpp_results(const OpDefinition& op, std::string_view type, std::string_view prefix) {
  if (!returns_struct(op)) return "";
  std::string text =
      fmt::format("/// Results of {}{}(); empty where a call has none of the kind.\nstruct {}_results {{\n", prefix,
                  op.name, op.name);
  for (const OperandSpec& spec : op.outputs)
    text +=
        cpp_comment(fmt::format("{}: {}", spec.shape, spec.doc), 2) + fmt::format("  {} {} = {{}};\n", type, spec.name);
  return text + "};\n";
}

std::string cpp_operator_comment(const OpDefinition& op, std::size_t indent) {
  const auto row = [](const OperandSpec& spec) {
    return fmt::format("{}: {} {}, {}", spec.name, spec.dtypes.to_string(), spec.shape, spec.doc);
  };
  const std::string empty = std::string(indent, ' ') + "///\n";
  std::string text =
      cpp_comment(fmt::format("{}.", op.summary), indent) + empty + cpp_comment(op.semantics, indent) + empty;
  for (const OperandSpec& spec : op.inputs)
    if (!spec.optional) text += cpp_comment("- " + row(spec), indent);
  if (!returns_struct(op)) text += cpp_comment("- returns " + row(op.outputs.front()), indent);
  return text;
}

CppAttributes cpp_attributes(const OpDefinition& op, std::string_view indent) {
  CppAttributes made;
  for (const AttributeSpec& spec : op.attributes) {
    if (!member_of(spec.fallback)) continue;
    std::string value = fmt::format("options.{}", spec.name);
    if (std::holds_alternative<Strings>(spec.fallback)) {
      made.lines += fmt::format("{}const face::texts {}({});\n", indent, spec.name, value);
      value = spec.name;
    }
    made.list += fmt::format("{}face::value(\"{}\", {})", made.list.empty() ? "" : ", ", spec.name, value);
  }
  return made;
}

}  // namespace cermet
