// cermet ops: the list of operators, one operator's reference page, and which kernel takes a given call.
#include <algorithm>
#include <map>

#include "api/schema.hpp"
#include "base/text.hpp"
#include "cli/op_call.hpp"
#include "cli/verb.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cpu/limits.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/cuda/task.hpp"
#include "op/operator.hpp"
#include "op/region_text.hpp"
#include "runtime/context.hpp"
#include "select/bound_op.hpp"
#include "select/select.hpp"

namespace cermet::cli::ops_verb {
namespace {

struct Options {
  std::string name, explain, constants, device = "cpu";
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
  for (const auto& [backend, list] : {std::pair("CPU", cpu::kernels_of(op.kind)), std::pair("GPU", cuda::kernels_of(op.kind))}) {
    Table kernels;
    for (const Kernel* kernel : list) kernels.row({std::string(kernel->name), std::string(kernel->summary)});
    if (!kernels.empty())
      console.print("Kernels on the {}, in the order that decides where models of their costs cannot tell\n{}\n", backend, kernels.to_string());
  }
  console.print("Example\n  cermet ops {} --explain '{}'\n", op.name, api::example_call(op));
}

// ---- One call ----

std::string verdict(const Selection& selection, const Candidate& candidate) {
  if (candidate.decline) return fmt::format("declines: {}", *candidate.decline);
  return candidate.kernel == selection.choice.kernel ? "chosen" : "would fit too";
}

Json configs_json(const Candidate& candidate) {
  Json list = Json::array();
  for (const ConfigCost& cost : candidate.configs)
    list.push_back({{"config", cost.config.to_string()}, {"modelled_seconds", cost.seconds > 0 ? Json(cost.seconds) : Json()}});
  return list;
}

/// Programs of a candidate's launches that its own do not suit.
Json fallbacks_of(const Region& region, const Candidate& candidate) {
  Json list = Json::array();
  if (candidate.decline || !candidate.kernel->programs) return list;
  for (const cuda::Program& program : candidate.kernel->programs(region))
    if (program.fallback) list.push_back(short_name(program));
  return list;
}

/// Constant operands with the layout that the kernel packs them into.
Json layouts_of(const Region& region, const Kernel& kernel) {
  Json list = Json::array();
  for (std::size_t i = 0; i < region.operands.size(); ++i) {
    if (!region.has(i) || !region.is_constant(i)) continue;
    const WeightLayout* layout = kernel.weight_layout(region, i);
    if (layout) list.push_back({{"operand", operand_name(region, i)}, {"layout", layout->name}, {"bytes", packed_bytes(*layout, region.operand_type(i))}});
  }
  return list;
}

Json explain_json(const Region& region, const Selection& selection, int threads) {
  const Cost cost = cost_of(region);
  Json json{{"problem", region.to_string()}, {"outputs", Json::object()}, {"operations", cost.operations}, {"bytes", cost.bytes}};
  for (std::size_t i = 0; i < region.results.size(); ++i) json["outputs"][result_name(region, i)] = region.result_type(i).to_string();
  json["constants"] = constant_names(region);
  if (region.target()) {
    json["target"] = region.target()->name;
  } else {
    json["instruction_set"] = cpu::name_of(cpu::active_isa());
    json["threads"] = threads;
  }
  json["candidates"] = Json::array();
  for (const Candidate& candidate : selection.candidates)
    json["candidates"].push_back({{"kernel", candidate.kernel->name},
                                  {"decline", candidate.decline ? Json(*candidate.decline) : Json()},
                                  {"configs", configs_json(candidate)},
                                  {"fallbacks", fallbacks_of(region, candidate)}});
  json["limits"] = limits_of(region.target()).source;
  const auto& [kernel, config] = selection.choice;
  json["kernel"] = kernel ? Json(kernel->name) : Json();
  if (!kernel) return json;
  json["config"] = config.to_string();
  json["workspace_bytes"] = kernel->workspace(region, config, threads);
  json["packed"] = layouts_of(region, *kernel);
  if (!kernel->programs) return json;
  json["programs"] = Json::array();
  json["fallbacks"] = Json::array();
  for (const cuda::Program& program : kernel->programs(region, config)) json[program.fallback ? "fallbacks" : "programs"].push_back(short_name(program));
  return json;
}

/// A row for the kernel, and one for each configuration but its own choice.
void add_candidate(Table& table, std::size_t i, const Region& region, const Selection& selection) {
  const Candidate& candidate = selection.candidates[i];
  const bool chosen = candidate.kernel == selection.choice.kernel;
  std::string text = verdict(selection, candidate);
  if (!candidate.decline && candidate.configs[0].seconds > 0) text += fmt::format("; modelled to take {}", seconds_text(candidate.configs[0].seconds));
  if (const Json fallbacks = fallbacks_of(region, candidate); !fallbacks.empty())
    text += fmt::format("; unaligned launches fall back on {}", fmt::join(fallbacks.get<std::vector<std::string>>(), ", "));
  table.row({std::to_string(i + 1), candidate.kernel->name, text});
  for (std::size_t c = 1; c < candidate.configs.size(); ++c) {
    const ConfigCost& cost = candidate.configs[c];
    const char* const mark = chosen && cost.config == selection.choice.config ? ", chosen" : "";
    table.row({"", fmt::format("  {}", cost.config.to_string()), fmt::format("{}{}", cost.seconds > 0 ? seconds_text(cost.seconds) : "-", mark)});
  }
}

void explain_text(Console& console, const Region& region, const Selection& selection, const Json& json) {
  const double operations = json["operations"].get<double>(), bytes = json["bytes"].get<double>();
  Table facts, candidates;
  for (const auto& [name, type] : json["outputs"].items()) facts.row({"result " + name, type.get<std::string>()});
  facts.row({"cost", fmt::format("{} operations, {} moved ({:.3g} operations per byte)", count_text(operations), bytes_text(bytes),
                                 operations / std::max(bytes, 1.0))});
  if (const auto names = constant_names(region); !names.empty()) facts.row({"constants", fmt::format("{}", fmt::join(names, ", "))});
  facts.row({"machine",
             region.target() ? region.target()->name : fmt::format("{} threads, {}", json["threads"].get<int>(), json["instruction_set"].get<std::string>())});
  if (!region.target() && cpu::active_isa() >= cpu::Isa::avx512_bf16)
    facts.row({"bf16", fmt::format("dot products run at {:.2f} times float32, measured now", cpu::bf16_ratio())});
  if (!region.target() && cpu::active_isa() >= cpu::Isa::amx)
    facts.row({"AMX", fmt::format("bf16 tiles run at {:.2f} times float32, int8 tiles at {:.2f} times dot products, measured now", cpu::amx_bf16_ratio(),
                                  cpu::amx_int8_ratio())});
  facts.row({"limits", json["limits"].get<std::string>()});
  if (selection.choice.kernel) {
    facts.row({"workspace", bytes_text(json["workspace_bytes"].get<double>())});
    for (const Json& packed : json["packed"])
      facts.row({"packed " + packed["operand"].get<std::string>(),
                 fmt::format("{}, {}", packed["layout"].get<std::string>(), bytes_text(packed["bytes"].get<double>()))});
  }
  if (json.contains("programs")) {
    const auto names = [&](const char* key) { return fmt::format("{}", fmt::join(json[key].get<std::vector<std::string>>(), ", ")); };
    facts.row({"programs", names("programs")});
    if (!json["fallbacks"].empty()) facts.row({"fallbacks", names("fallbacks") + ", for addresses or strides that do not suit the kernel's own programs"});
  }
  for (std::size_t i = 0; i < selection.candidates.size(); ++i) add_candidate(candidates, i, region, selection);
  console.print("{}\n{}candidates with their configurations and modelled times; the first where models cannot tell\n{}", region.to_string(), facts.to_string(),
                candidates.to_string());
  if (!selection.choice.kernel) console.write("no kernel takes this call\n");
}

void explain(Console& console, const Options& options) {
  Region region =
      options.name.empty() ? parse_region_call(options.explain, "", options.tokens) : parse_region_call(options.name, options.explain, options.tokens);
  mark_constants(region, options.constants);
  const Context context({options.device, options.threads});
  region.set_target(context.target());
  const Selection selection = explain_selection(region);
  const Json json = explain_json(region, selection, context.pool().size());
  if (console.json()) console.write_json(json);
  else explain_text(console, region, selection, json);
}

void show(Console& console, const Options& options) {
  if (options.name.empty()) {
    require(options.explain.empty() || is_region_text(options.explain), "--explain: expected an operator's name before it, or a region, found {}",
            quote(options.explain));
    if (!options.explain.empty()) return explain(console, options);
    return console.json() ? list_json(console) : list_text(console);
  }
  const OpDefinition& op = api::operator_named(options.name);
  if (!options.explain.empty()) return explain(console, options);
  if (console.json()) console.write_json(api::schema_json(op));
  else show_text(console, op);
}

}  // namespace

Verb verb() {
  return {
      "ops", "the operators; one operator's schema, semantics and kernels; which kernel computes a given call, and why",
      "  cermet ops\n"
      "  cermet ops rms_norm\n"
      "  cermet ops linear --explain 'x=bf16[8,2048] w=bf16[8192,2048]'\n"
      "  cermet ops rms_norm --explain 'bf16[T,2048] - eps=1e-5' --tokens 16\n"
      "  cermet ops linear --explain 'x=bf16[8,2048] w=bf16[8192,2048]' --device null:sm_90\n"
      "  cermet ops --device null:sm_90 --explain '{n0 = rms_norm($0: f32[1, 4096], $1: f32[4096]); n1 = linear(strict n0, $2: bf16[6144, 4096])} anchor n1 -> "
      "n1'",
      [](Parser& parser) -> Action {
        const auto options = std::make_shared<Options>();
        parser.option("NAME", options->name, "an operator");
        parser.option("--explain", options->explain,
                      "a call: operand types by name or in order, attributes as name=value; or without NAME a region, as timelines and `bench model --plan "
                      "--json` print it; prints every "
                      "candidate kernel");
        parser.option("--constant", options->constants,
                      "with --explain: operands known before the first run, or none; by default those that a kernel would prepack");
        parser.option("--tokens", options->tokens, "with --explain: largest value of a symbolic dimension").range(1, 1 << 30).show_default();
        parser.option("--device", options->device, "with --explain: cpu, cuda, or null:sm_90 for such a GPU without one").show_default();
        parser.option("--threads", options->threads, "with --explain: threads that the workspace is for; 0 is one for each core").range(0, 1024);
        return [options](Console& console) { show(console, *options); };
      }};
}

}  // namespace cermet::cli::ops_verb
