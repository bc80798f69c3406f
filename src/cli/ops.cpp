// cermet ops: the list of operators, and one operator's reference page.
#include <algorithm>
#include <map>

#include "api/schema.hpp"
#include "base/text.hpp"
#include "cli/verb.hpp"
#include "foreign/registry.hpp"
#include "op/schema/operator.hpp"

namespace cermet::cli::ops_verb {
namespace {

struct Options {
  std::string name;
};

// ---- The list ----

void list_text(Console& console) {
  std::vector<std::string_view> categories;
  for (const OpDefinition& op : all_operators())
    if (std::find(categories.begin(), categories.end(), op.category) == categories.end())
      categories.push_back(op.category);
  for (const std::string_view category : categories) {
    Table table;
    for (const OpDefinition& op : all_operators())
      if (op.category == category) table.row({std::string(op.name), std::string(op.summary)});
    console.print("{}\n{}\n", category, table.to_string());
  }
  console.print("{} operators; `cermet ops NAME` describes one\n", all_operators().size());
}

void list_json(Console& console) {
  Json list = Json::array();
  for (const OpDefinition& op : all_operators())
    list.push_back({{"name", op.name}, {"category", op.category}, {"summary", op.summary}});
  console.write_json({{"operators", list}});
}

// ---- One operator ----

/// Text broken at spaces into lines of at most `width` characters, each after two spaces.
std::string wrapped(std::string_view text, std::size_t width) {
  std::string out;
  while (!text.empty()) {
    std::size_t cut = text.size();
    if (cut > width) {
      const std::size_t space = text.rfind(' ', width);
      cut = space == std::string_view::npos ? std::min(text.size(), text.find(' ', width)) : space;
    }
    out += fmt::format("  {}\n", text.substr(0, cut));
    text.remove_prefix(std::min(text.size(), cut + 1));
  }
  return out;
}

void add_operand(Table& table, const OperandSpec& spec, bool is_input) {
  const std::string kind = spec.optional ? ", optional" : spec.variadic ? ", one or more" : "";
  std::vector<std::string> cells{std::string(spec.name),
                                 fmt::format("{} {}{}", spec.dtypes.to_string(), spec.shape, kind)};
  if (is_input) cells.emplace_back(name_of(spec.mapping));
  cells.emplace_back(spec.doc);
  table.row(std::move(cells));
}

/// Names up to the last dot that several kernels share.
Table families_of(const OpDefinition& op) {
  std::map<std::string, int> counts;
  for (const bool gpu : {false, true})
    for (const Kernel* kernel : foreign::candidates(op.kind, gpu)) {
      const std::string name(kernel->name);
      if (std::ranges::count(name, '.') > 1) ++counts[name.substr(0, name.rfind('.'))];
    }
  Table table;
  for (const auto& [family, count] : counts)
    if (count > 1) table.row({family, fmt::format("{} kernels", count)});
  return table;
}

void show_text(Console& console, const OpDefinition& op) {
  console.print("{}: {}\n\nSemantics\n{}\n", op.name, op.summary, wrapped(op.semantics, 116));
  Table inputs, outputs, attributes;
  for (const OperandSpec& spec : op.inputs) add_operand(inputs, spec, true);
  for (const OperandSpec& spec : op.outputs) add_operand(outputs, spec, false);
  console.print("Inputs (name, type, mapping, meaning)\n{}\nOutputs\n{}\n", inputs.to_string(), outputs.to_string());
  for (const AttributeSpec& spec : op.attributes)
    attributes.row({std::string(spec.name), std::string(type_name(spec.fallback)),
                    "default " + to_string(spec.fallback),
                    spec.choices.empty() ? std::string(spec.doc)
                                         : fmt::format("{}: {}", fmt::join(spec.choices, ", "), spec.doc)});
  if (!attributes.empty()) console.print("Attributes\n{}\n", attributes.to_string());
  for (const auto& [backend, list] :
       {std::pair("CPU", foreign::candidates(op.kind, false)), std::pair("GPU", foreign::candidates(op.kind, true))}) {
    Table kernels;
    for (const Kernel* kernel : list) kernels.row({std::string(kernel->name), std::string(kernel->summary)});
    if (!kernels.empty())
      console.print("Kernels on the {}, in the order that decides where models of their costs cannot tell\n{}\n",
                    backend, kernels.to_string());
  }
  if (const Table families = families_of(op); !families.empty())
    console.print("Families, which --kernel takes for the best of their kernels\n{}\n", families.to_string());
  console.print("Example\n  cermet explain op {} --shape '{}'\n", op.name, api::example_call(op));
}

void show(Console& console, const Options& options) {
  if (options.name.empty()) return console.json() ? list_json(console) : list_text(console);
  const OpDefinition& op = api::operator_named(options.name);
  if (console.json()) console.write_json(api::schema_json(op));
  else show_text(console, op);
}

}  // namespace

Verb verb() {
  return {"ops", "list the operators, or describe one",
          "cermet ops\n"
          "cermet ops rms_norm\n"
          "cermet ops linear --json",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser.option("NAME <OPERATOR>", options->name, "an operator: schema, semantics, kernels and an example");
            return [options](Console& console) { show(console, *options); };
          }};
}

}  // namespace cermet::cli::ops_verb
