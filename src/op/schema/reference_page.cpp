#include "op/schema/reference_page.hpp"

#include <algorithm>

#include "base/markdown.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

/// The anchor that Markdown viewers give a heading.
std::string anchor(std::string_view heading) {
  std::string link;
  for (const char c : heading) {
    if (c >= 'A' && c <= 'Z') link += static_cast<char>(c - 'A' + 'a');
    else if (c == ' ') link += '-';
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-') link += c;
  }
  return link;
}

/// Categories in the order in which operators first name them.
std::vector<std::string_view> categories() {
  std::vector<std::string_view> list;
  for (const OpDefinition& op : all_operators())
    if (std::find(list.begin(), list.end(), op.category) == list.end()) list.push_back(op.category);
  return list;
}

std::string contents() {
  std::string text;
  for (const std::string_view category : categories()) {
    text += fmt::format("- [{}](#{}): ", category, anchor(category));
    std::string separator;
    for (const OpDefinition& op : all_operators()) {
      if (op.category != category) continue;
      text += fmt::format("{}[`{}`](#{})", separator, op.name, anchor(op.name));
      separator = ", ";
    }
    text += "\n";
  }
  return text;
}

std::string operand_row(const OperandSpec& operand, bool is_input) {
  const std::string_view presence = operand.optional ? ", optional" : operand.variadic ? ", one or more" : "";
  std::string row = fmt::format("| `{}`{} | {} | `{}` | ", operand.name, presence, operand.dtypes.to_string(),
                                table_cell(operand.shape));
  if (is_input) row += fmt::format("{} | ", name_of(operand.mapping));
  return row + table_cell(operand.doc) + " |\n";
}

std::string operand_tables(const OpDefinition& op) {
  std::string text;
  if (!op.inputs.empty()) text += "\n| operand | types | shape | mapping | meaning |\n|---|---|---|---|---|\n";
  for (const OperandSpec& operand : op.inputs) text += operand_row(operand, true);
  text += "\n| result | types | shape | meaning |\n|---|---|---|---|\n";
  for (const OperandSpec& operand : op.outputs) text += operand_row(operand, false);
  return text;
}

std::string attribute_table(const OpDefinition& op) {
  if (op.attributes.empty()) return "";
  std::string text = "\n| attribute | type | default | meaning |\n|---|---|---|---|\n";
  for (const AttributeSpec& attribute : op.attributes) {
    std::string doc = table_cell(attribute.doc);
    if (!attribute.choices.empty()) doc += fmt::format(": {}", fmt::join(attribute.choices, ", "));
    text += fmt::format("| `{}` | {} | `{}` | {} |\n", attribute.name, type_name(attribute.fallback),
                        table_cell(to_string(attribute.fallback)), doc);
  }
  return text;
}

/// What the fusion planner and the memory planner may rely on.
std::string properties(const OpDefinition& op) {
  std::vector<std::string> list;
  if (op.associative) list.emplace_back("associative");
  if (op.commutative) list.emplace_back("commutative");
  if (op.distributive) list.emplace_back("distributive");
  if (op.is_view) list.emplace_back("shares the memory of its operand");
  const auto pairs = [&](const std::vector<int>& inputs, std::string_view verb) {
    for (std::size_t o = 0; o < inputs.size(); ++o)
      if (inputs[o] >= 0)
        list.push_back(
            fmt::format("`{}` {} `{}`", op.outputs[o].name, verb, op.inputs[static_cast<std::size_t>(inputs[o])].name));
  };
  pairs(op.aliases, "updates");
  pairs(op.in_place, "may overwrite");
  return list.empty() ? "" : fmt::format("\nProperties: {}.\n", fmt::join(list, "; "));
}

}  // namespace

std::string operator_reference_markdown() {
  std::string text = fmt::format(
      "# Operators\n\n"
      "The {} operators, generated from their schemas in `src/op` (`cermet ops NAME` prints one of them with its "
      "kernels). In shapes, `..` stands for any "
      "number "
      "of "
      "leading dimensions. The mapping type of an operand says how a result's elements read it; the fusion planner "
      "relies on it.\n\n{}",
      all_operators().size(), contents());
  for (const std::string_view category : categories()) {
    text += fmt::format("\n## {}\n", category);
    for (const OpDefinition& op : all_operators()) {
      if (op.category != category) continue;
      text += fmt::format("\n### {}\n\n{}.\n\n{}\n{}{}{}", op.name, op.summary, op.semantics, operand_tables(op),
                          attribute_table(op), properties(op));
    }
  }
  return text;
}

}  // namespace cermet
