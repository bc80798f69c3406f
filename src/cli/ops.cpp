// cermet ops: the list of operators, one operator's reference page, how a call would be computed, and what a tuner may choose from for it.
#include <algorithm>
#include <map>

#include "api/schema.hpp"
#include "base/text.hpp"
#include "cli/explain_selection.hpp"
#include "cli/op_call.hpp"
#include "cli/ops_space.hpp"
#include "cli/verb.hpp"
#include "foreign/registry.hpp"
#include "op/operator.hpp"
#include "op/region_text.hpp"
#include "runtime/context.hpp"

namespace cermet::cli::ops_verb {
namespace {

constexpr const char* example = "example";  ///< --space without a call: that of the operator's page

struct Options {
  std::string name, space, call, constants, device = "cpu";
  std::int64_t tokens = 512;
  int threads = 0;
};

// ---- The list ----

void list_text(Console& console) {
  std::vector<std::string_view> categories;
  for (const OpDefinition& op : all_operators())
    if (std::find(categories.begin(), categories.end(), op.category) == categories.end()) categories.push_back(op.category);
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
  for (const OpDefinition& op : all_operators()) list.push_back({{"name", op.name}, {"category", op.category}, {"summary", op.summary}});
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
  std::vector<std::string> cells{std::string(spec.name), fmt::format("{} {}{}", spec.dtypes.to_string(), spec.shape, kind)};
  if (is_input) cells.emplace_back(name_of(spec.mapping));
  cells.emplace_back(spec.doc);
  table.row(std::move(cells));
}

void show_text(Console& console, const OpDefinition& op) {
  console.print("{}: {}\n\nSemantics\n{}\n", op.name, op.summary, wrapped(op.semantics, 116));
  Table inputs, outputs, attributes;
  for (const OperandSpec& spec : op.inputs) add_operand(inputs, spec, true);
  for (const OperandSpec& spec : op.outputs) add_operand(outputs, spec, false);
  console.print("Inputs (name, type, mapping, meaning)\n{}\nOutputs\n{}\n", inputs.to_string(), outputs.to_string());
  for (const AttributeSpec& spec : op.attributes)
    attributes.row({std::string(spec.name), std::string(type_name(spec.fallback)), "default " + to_string(spec.fallback),
                    spec.choices.empty() ? std::string(spec.doc) : fmt::format("{}: {}", fmt::join(spec.choices, ", "), spec.doc)});
  if (!attributes.empty()) console.print("Attributes\n{}\n", attributes.to_string());
  for (const auto& [backend, list] : {std::pair("CPU", foreign::candidates(op.kind, false)), std::pair("GPU", foreign::candidates(op.kind, true))}) {
    Table kernels;
    for (const Kernel* kernel : list) kernels.row({std::string(kernel->name), std::string(kernel->summary)});
    if (!kernels.empty())
      console.print("Kernels on the {}, in the order that decides where models of their costs cannot tell\n{}\n", backend, kernels.to_string());
  }
  console.print("Example\n  cermet explain op {} --shape '{}'\n", op.name, api::example_call(op));
}

// ---- One call ----

void show_call(Console& console, const Options& options) {
  const bool spaces = !options.space.empty(), is_example = options.space == example;
  require(!spaces || options.call.empty(), "--explain: expected it or --space, found both");
  const std::string& call = spaces ? options.space : options.call;
  require(!options.name.empty() || is_region_text(call), "{}: expected an operator's name before it, or a region, found {}", spaces ? "--space" : "--explain",
          is_example ? "nothing" : quote(call));
  Region region = options.name.empty()
                      ? parse_region_call(call, "", options.tokens)
                      : parse_region_call(options.name, is_example ? api::example_call(api::operator_named(options.name)) : call, options.tokens);
  mark_constants(region, options.constants);
  const Context context({options.device, options.threads});
  region.set_target(context.target());
  if (spaces) print_spaces(console, region, context.pool().size());
  else print_selection(console, region, context.pool().size(), "");
}

void show(Console& console, const Options& options) {
  if (!options.space.empty() || !options.call.empty()) return show_call(console, options);
  if (options.name.empty()) return console.json() ? list_json(console) : list_text(console);
  const OpDefinition& op = api::operator_named(options.name);
  if (console.json()) console.write_json(api::schema_json(op));
  else show_text(console, op);
}

}  // namespace

Verb verb() {
  return {"ops", "the operators; one operator's schema, semantics and kernels; how a call of it would be computed, and what a tuner may choose from",
          "  cermet ops\n"
          "  cermet ops rms_norm\n"
          "  cermet ops linear --explain 'x=bf16[8,2048] w=bf16[8192,2048]' --device null:sm_90\n"
          "  cermet ops rms_norm --space\n"
          "  cermet ops linear --space 'x=bf16[8,2048] w=bf16[8192,2048]' --device null:sm_90",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser.option("NAME", options->name, "an operator");
            parser.option("--explain", options->call,
                          "a call, or without NAME a region: prints what `cermet explain op` does, every candidate kernel with its decline or its times");
            Option space = parser.option(
                "--space", options->space,
                "a call, as `cermet explain op` takes it, or without NAME a region: prints which configurations of each candidate kernel a tuner may choose "
                "from; without a call, for the example of the operator's page");
            space.or_alone(example);
            parser.option("--constant", options->constants,
                          "with --space and --explain: operands known before the first run, or none; by default those that a kernel would prepack");
            parser.option("--tokens", options->tokens, "with --space and --explain: largest value of a symbolic dimension").range(1, 1 << 30).show_default();
            parser.option("--device", options->device, "with --space and --explain: cpu, cuda, or null:sm_90 for such a GPU without one").show_default();
            parser.option("--threads", options->threads, "with --space and --explain: threads of the CPU; 0 is one for each core").range(0, 1024);
            return [options](Console& console) { show(console, *options); };
          }};
}

}  // namespace cermet::cli::ops_verb
