#include "op/schema/c_functions.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

namespace cermet {
namespace {

constexpr std::size_t c_line_width = 120;

/// A comment of one or several lines. What would end it early is spaced out.
std::string c_comment(std::string text, std::size_t indent) {
  for (std::size_t at = text.find("*/"); at != std::string::npos; at = text.find("*/", at)) text.insert(at + 1, " ");
  const std::string begin(indent, ' ');
  std::string out = begin + "/*", line;
  std::size_t used = out.size();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    if (used + 1 + end - at > c_line_width) {
      out += "\n" + begin + "  ";
      used = indent + 2;
    }
    out += " " + text.substr(at, end - at);
    used += 1 + end - at;
    at = std::min(end + 1, text.size());
  }
  return out + " */\n";
}

std::string c_literal(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string c_literal(double value) {
  if (std::isinf(value)) return value > 0 ? "HUGE_VAL" : "-HUGE_VAL";
  return fmt::format("{}", value);
}

std::string c_literal(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::max()) return "INT64_MAX";
  if (value == std::numeric_limits<std::int64_t>::min()) return "INT64_MIN";
  return std::to_string(value);
}

/// An attribute as members of the struct: their declaration, default, and what adds it to the list of attributes.
/// Nothing for tensors and graphs, which the C interface does not pass.
struct Member {
  std::string declaration, fallback, add;
};

Member list_member(std::string_view type, std::string_view kind, std::string_view name) {
  return {fmt::format("const {0}* {1};\n  size_t {1}_count;", type, name), "",
          fmt::format("if (args->{0}) attributes[count++] = cermet_attr_{1}(\"{0}\", args->{0}, args->{0}_count);",
                      name, kind)};
}

Member scalar_member(std::string_view type, std::string_view kind, std::string_view name, std::string fallback) {
  return {fmt::format("{} {};", type, name), std::move(fallback),
          fmt::format("attributes[count++] = cermet_attr_{0}(\"{1}\", args->{1});", kind, name)};
}

Member member_of(const AttributeSpec& spec) {
  const std::string_view name = spec.name;
  const auto member = [&]<class T>(const T& value) -> Member {
    if constexpr (std::is_same_v<T, bool>) return scalar_member("int32_t", "bool", name, value ? "1" : "0");
    else if constexpr (std::is_same_v<T, std::int64_t>) return scalar_member("int64_t", "int", name, c_literal(value));
    else if constexpr (std::is_same_v<T, double>) return scalar_member("double", "float", name, c_literal(value));
    else if constexpr (std::is_same_v<T, std::string>)
      return {fmt::format("const char* {};", name), value.empty() ? "" : c_literal(value),
              fmt::format("if (args->{0}) attributes[count++] = cermet_attr_string(\"{0}\", args->{0});", name)};
    else if constexpr (std::is_same_v<T, Ints>) return list_member("int64_t", "ints", name);
    else if constexpr (std::is_same_v<T, Floats>) return list_member("double", "floats", name);
    else if constexpr (std::is_same_v<T, Strings>) return list_member("char* const", "strings", name);
    else return {};
  };
  return std::visit(member, spec.fallback);
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

std::string operand_doc(const OperandSpec& spec) {
  return fmt::format("{} {}: {}{}", spec.dtypes.to_string(), spec.shape, spec.doc,
                     spec.optional ? "; may be left out" : "");
}

/// Places of operands in the arrays that cermet_op_run takes.
std::string operand_places(const OpDefinition& op) {
  std::string text;
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    text += fmt::format("{}CERMET_{}_{} = {}", i ? ", " : "", upper(op.name), upper(op.inputs[i].name), i);
  return text.empty() ? "" : fmt::format("enum {{ {} }};\n", text);
}

std::string arguments(const OpDefinition& op) {
  std::string text = fmt::format("typedef struct cermet_{}_args {{\n", op.name);
  for (const OperandSpec& spec : op.inputs) {
    text += c_comment(operand_doc(spec), 2);
    text += spec.variadic ? fmt::format("  const cermet_descriptor* {0};\n  size_t {0}_count;\n", spec.name)
                          : fmt::format("  cermet_descriptor {};\n", spec.name);
  }
  for (const AttributeSpec& spec : op.attributes) {
    const Member member = member_of(spec);
    if (member.declaration.empty()) continue;
    const std::string choices = spec.choices.empty() ? "" : fmt::format(": {}", fmt::join(spec.choices, ", "));
    text += c_comment(std::string(spec.doc) + choices, 2) + "  " + member.declaration + "\n";
  }
  return text + fmt::format(
                    "  /* dimensions that vary, as in cermet_op_create_ranged */\n  const cermet_range* ranges;\n  "
                    "size_t range_count;\n}} cermet_{}_args;\n",
                    op.name);
}

std::string defaults(const OpDefinition& op) {
  std::string text = fmt::format(
      "static inline cermet_{0}_args cermet_{0}_defaults(void) {{\n  cermet_{0}_args args;\n  memset(&args, 0, sizeof "
      "args);\n",
      op.name);
  for (const AttributeSpec& spec : op.attributes)
    if (const std::string fallback = member_of(spec).fallback; !fallback.empty() && fallback != "0")
      text += fmt::format("  args.{} = {};\n", spec.name, fallback);
  return text + "  return args;\n}\n";
}

std::string create(const OpDefinition& op) {
  std::string text = fmt::format(
      "static inline cermet_status cermet_{0}_create(cermet_handle* handle, const cermet_{0}_args* args, cermet_op** "
      "op) {{\n",
      op.name);
  std::string inputs = "NULL, 0";
  if (!op.inputs.empty() && op.inputs.back().variadic) {
    inputs = fmt::format("args->{0}, args->{0}_count", op.inputs.back().name);
  } else if (!op.inputs.empty()) {
    text += "  const cermet_descriptor inputs[] = {";
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      text += fmt::format("{}args->{}", i ? ", " : "", op.inputs[i].name);
    text += "};\n";
    inputs = "inputs, sizeof inputs / sizeof *inputs";
  }
  std::string adds;
  std::size_t count = 0;
  for (const AttributeSpec& spec : op.attributes) {
    const Member member = member_of(spec);
    if (member.add.empty()) continue;
    adds += "  " + member.add + "\n";
    ++count;
  }
  if (count > 0) text += fmt::format("  cermet_attribute attributes[{}];\n  size_t count = 0;\n{}", count, adds);
  return text +
         fmt::format(
             "  return cermet_op_create_ranged(handle, \"{}\", {}, {}, args->ranges, args->range_count, op);\n}}\n",
             op.name, inputs, count > 0 ? "attributes, count" : "NULL, 0");
}

}  // namespace

std::string c_function(const OpDefinition& op) {
  return c_comment(fmt::format("{}. {}", op.summary, op.semantics), 0) + operand_places(op) + arguments(op) +
         defaults(op) + create(op);
}

std::string c_functions_header() {
  std::string text =
      "/* Cermet: typed creation of every operator, for C. Generated from the operators' schemas by the build; do not "
      "edit.\n"
      " *\n"
      " *   cermet_rms_norm_args args = cermet_rms_norm_defaults();\n"
      " *   args.x = cermet_tensor(\"bf16\", 2, (int64_t[]){64, 4096});\n"
      " *   args.eps = 1e-5;\n"
      " *   cermet_status status = cermet_rms_norm_create(handle, &args, &op);\n"
      " *\n"
      " * Operands and attributes are members, with the schema's defaults; an optional operand that is not set is not "
      "given, and NULL is an attribute's\n"
      " * default. The operator runs as one of cermet_op_create does; CERMET_RMS_NORM_X is the place of an operand in "
      "the arrays of cermet_op_run. */\n"
      "#ifndef CERMET_OPS_H_\n#define CERMET_OPS_H_\n\n#include <cermet/cermet.h>\n#include <math.h>\n#include "
      "<string.h>\n\n"
      "#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (const OpDefinition& op : all_operators()) text += "\n" + c_function(op);
  return text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* CERMET_OPS_H_ */\n";
}

}  // namespace cermet
