// cermet inspect: what a checkpoint is, what its files hold, and whether all of it is valid.
#include <algorithm>
#include <map>

#include "cli/onnx_model.hpp"
#include "cli/tokens.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/progress.hpp"
#include "cli/verb.hpp"
#include "model/checkpoint/checkpoint_report.hpp"

namespace cermet::cli::inspect_verb {
namespace {

struct Options {
  std::string model;
  bool check = false, tensors = false;
  int threads = 0;
};

Json architecture_json(const ModelConfig& c) {
  Json json{{"name", c.architecture_name},
            {"layers", c.layers},
            {"hidden_size", c.hidden_size},
            {"heads", c.heads},
            {"kv_heads", c.kv_heads},
            {"head_dim", c.head_dim},
            {"intermediate_size", c.intermediate_size},
            {"vocab_size", c.vocab_size},
            {"max_position_embeddings", c.max_position_embeddings},
            {"rope_theta", c.rope.theta},
            {"tied_embeddings", c.decoder.is_tied()},
            {"dtype", name_of(c.dtype)},
            {"eos_ids", c.eos_ids}};
  std::int64_t windowed = 0, window = 0, sparse = 0;
  for (const Layer& layer : c.decoder.layers) {
    const auto* attention = find_body<Attention>(layer);
    if (attention && attention->window > 0) ++windowed, window = std::max(window, attention->window);
    if (find_body<Mixture>(layer)) ++sparse;
  }
  if (windowed > 0) json["windowed_layers"] = windowed, json["window"] = window;
  if (sparse > 0) {
    json["sparse_layers"] = sparse;
    json["experts"] = c.experts;
    json["experts_per_token"] = c.experts_per_token;
    json["expert_intermediate_size"] = c.expert_intermediate_size;
  }
  return json;
}

Json report_json(const Checkpoint& checkpoint, const CheckpointReport& report) {
  Json json{{"model", checkpoint.folder().string()},
            {"architecture", architecture_json(checkpoint.config())},
            {"tensor_count", report.tensors},
            {"parameters", report.parameters},
            {"active_parameters", report.active_parameters},
            {"bytes", report.bytes}};
  for (const char* list : {"tensors", "files", "storage"}) json[list] = Json::array();
  for (const StorageTotal& s : report.storage)
    json["storage"].push_back(
        {{"dtype", name_of(s.dtype)}, {"tensors", s.tensors}, {"elements", s.elements}, {"bytes", s.bytes}});
  for (const FileTotal& f : report.files)
    json["files"].push_back({{"name", f.name}, {"tensors", f.tensors}, {"bytes", f.bytes}});
  for (const StoredTensor& t : checkpoint.tensors())
    json["tensors"].push_back({{"name", t.name},
                               {"dtype", name_of(t.dtype)},
                               {"shape", t.shape},
                               {"bytes", t.bytes()},
                               {"file", checkpoint.file_of(t).path().filename().string()}});
  for (const auto& [scheme, modules] : report.schemes) json["schemes"][scheme] = modules;
  json["problems"] = report.problems;
  json["warnings"] = report.warnings;
  return json;
}

/// The name with every number in it as '*': tensors of all layers and experts look alike.
std::string pattern_of(std::string_view name) {
  std::string pattern;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) pattern += c;
    else if (pattern.empty() || pattern.back() != '*') pattern += '*';
  }
  return pattern;
}

/// Tensors that differ in numbers of their names only, as one row.
Table grouped_tensors(const Checkpoint& checkpoint) {
  struct Group {
    std::int64_t count = 0, bytes = 0;
    std::string_view first;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Group> groups;
  for (const StoredTensor& t : checkpoint.tensors()) {
    Group& group = groups[{pattern_of(t.name), std::string(name_of(t.dtype)), shape_to_string(t.shape)}];
    if (group.count++ == 0) group.first = t.name;
    group.bytes += t.bytes();
  }
  Table table;
  for (const auto& [key, group] : groups) {
    const auto& [pattern, dtype, shape] = key;
    table.row({group.count == 1 ? std::string(group.first) : pattern, dtype + shape,
               group.count == 1 ? "" : fmt::format("x {}", group.count), bytes_text(static_cast<double>(group.bytes))});
  }
  return table;
}

Table all_tensors(const Checkpoint& checkpoint) {
  Table table;
  for (const StoredTensor& t : checkpoint.tensors())
    table.row({t.name, std::string(name_of(t.dtype)) + shape_to_string(t.shape),
               bytes_text(static_cast<double>(t.bytes())), checkpoint.file_of(t).path().filename().string()});
  return table;
}

void print_lines(Console& console, std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  console.print("{}\n", title);
  for (const std::string& line : lines) console.print("  {}\n", line);
}

void print_report(Console& console, const Checkpoint& checkpoint, const CheckpointReport& report, bool every_tensor) {
  Table architecture, storage, schemes, files;
  const Json facts = architecture_json(checkpoint.config());
  for (const auto& [name, value] : facts.items())
    architecture.row({name, value.is_string() ? value.get<std::string>() : value.dump()});
  architecture.row(
      {"parameters", fmt::format("{} ({} active per token)", count_text(static_cast<double>(report.parameters)),
                                 count_text(static_cast<double>(report.active_parameters)))});
  for (const StorageTotal& s : report.storage)
    storage.row({std::string(name_of(s.dtype)), fmt::format("{} tensors", s.tensors),
                 bytes_text(static_cast<double>(s.bytes))});
  for (const auto& [scheme, modules] : report.schemes) schemes.row({scheme, fmt::format("{} linear modules", modules)});
  for (const FileTotal& f : report.files)
    files.row({f.name, fmt::format("{} tensors", f.tensors), bytes_text(static_cast<double>(f.bytes))});
  console.print("architecture\n{}tensors\n{}storage formats\n{}files\n{}", architecture.to_string(),
                (every_tensor ? all_tensors(checkpoint) : grouped_tensors(checkpoint)).to_string(), storage.to_string(),
                files.to_string());
  if (!report.schemes.empty()) console.print("schemes\n{}", schemes.to_string());
  print_lines(console, "problems", report.problems);
  print_lines(console, "warnings", report.warnings);
}

Json check_json(const CheckpointCheck& check, bool has_tokenizer) {
  Json list = Json::array();
  for (const NonFinite& n : check.non_finite)
    list.push_back({{"tensor", n.tensor}, {"file", n.file}, {"nan", n.nan}, {"infinite", n.infinite}});
  return {{"ok", check.ok()}, {"bytes_read", check.bytes_read}, {"tokenizer", has_tokenizer}, {"non_finite", list}};
}

void print_check(Console& console, const CheckpointCheck& check, bool has_tokenizer) {
  std::vector<std::string> lines;
  for (const NonFinite& n : check.non_finite)
    lines.push_back(fmt::format("{} ({}): {} NaN, {} infinite", n.tensor, n.file, n.nan, n.infinite));
  print_lines(console, "values that are not finite", lines);
  console.print("check\n  every byte read: {}\n  tokenizer.json: {}\n",
                bytes_text(static_cast<double>(check.bytes_read)), has_tokenizer ? "valid" : "none");
}

CheckpointCheck check_data(const Checkpoint& checkpoint, int threads) {
  ThreadPool pool(threads);
  Progress progress("checking");
  return check(checkpoint, pool,
               {&interrupted(), [&](std::int64_t done, std::int64_t total) { progress.update(done, total); }});
}

void inspect(Console& console, const Options& options) {
  if (is_onnx(options.model)) return inspect_onnx(options.model, console);
  const bool has_tokenizer = options.check && find_tokenizer(options.model).has_value();
  const Checkpoint checkpoint = Checkpoint::open(options.model);
  std::optional<CheckpointCheck> checked;
  if (options.check) checked = check_data(checkpoint, options.threads);
  const CheckpointReport found = checked ? checked->report : report(checkpoint);
  if (options.check && !found.problems.empty())
    fail(Status::invalid_file, "{}: expected every tensor of {}, found {} problems, the first: {}", options.model,
         found.architecture, found.problems.size(), found.problems.front());
  if (console.json()) {
    Json json = report_json(checkpoint, found);
    if (checked) json["check"] = check_json(*checked, has_tokenizer);
    return console.write_json(json);
  }
  print_report(console, checkpoint, found, options.tensors);
  if (checked) print_check(console, *checked, has_tokenizer);
}

}  // namespace

Verb verb() {
  return {"inspect", "show what a checkpoint or an ONNX file holds",
          "  cermet inspect models/demo\n"
          "  cermet inspect models/demo --check --json\n"
          "  cermet inspect models/demo_onnx/classifier.onnx",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser.option("MODEL", options->model, "folder with config.json and safetensors files, or an ONNX file")
                .required();
            parser.section("Options", checkpoint_input);
            parser.flag("--check", options->check,
                        "read every byte of every file; exit code 2 where the model cannot be loaded");
            parser.flag("--tensors", options->tensors, "list every tensor, not one row for all layers");
            parser.option("--threads", options->threads, "threads that read; 0: one for each core")
                .range(0, 1024)
                .show_default()
                .needs("--check");
            return [options, given = parser.given()](Console& console) {
              if (is_onnx(options->model)) given->check_input(onnx_input, options->model);
              inspect(console, *options);
            };
          }};
}

}  // namespace cermet::cli::inspect_verb
