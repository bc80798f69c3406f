#include "cli/model_options.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/checked.hpp"
#include "cli/graph_file.hpp"
#include "cli/onnx_model.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/progress.hpp"
#include "model/engine_options.hpp"
#include "model/parallel/replicas.hpp"
#include "select/select.hpp"

namespace cermet::cli {
namespace {

constexpr std::int64_t default_context = 4096, engine_block = 16;  // a context is whole blocks of the cache

/// Declares the options of a section: those of every verb, or those of some.
void declare_section(Parser& parser, ModelOptions& options, const ModelVerb& verb, std::string_view section,
                     bool of_every_verb) {
  const OptionTable& table = engine_option_table();
  for (const OptionRow& row : table)
    if (row.section == section && (row.verbs == OptionVerbs::all) == of_every_verb &&
        (row.verbs != OptionVerbs::decoding || verb.decodes) &&
        (row.verbs != OptionVerbs::replicating || verb.replicates))
      declare_option(parser, row, table, row.field(&options.engine), &options.names[row.name]);
}

}  // namespace

void declare_option(Parser& parser, const OptionRow& row, const OptionTable& table, const OptionField& stored,
                    std::string* name) {
  const std::string flag(row.flag), help(row.help);
  const auto declare = [&](auto field) {
    using T = std::remove_pointer_t<decltype(field)>;
    if constexpr (std::is_same_v<T, bool>) return parser.flag(flag, *field, help);
    else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>)
      return parser.option(flag, *field, help);
    else return parser.option(flag, *name, help);
  };
  Option made = std::visit(declare, stored);
  const OptionText text = text_of(row, table);
  const OptionValues& v = row.values;
  if (text.type == "name") made.values(row.names());
  else if (!row.names().empty()) made.suggests(row.names());
  if (v.least != v.most) {
    const bool zero_is_absent = v.least == 0 && !row.fallback.empty();
    if (text.type == "int")
      made.range(static_cast<std::int64_t>(v.least) + zero_is_absent, static_cast<std::int64_t>(v.most));
    else if (v.is_open) made.above(v.least, v.most);
    else made.range(v.least, v.most);
  }
  if (!row.verb_fallback.empty()) made.default_text(std::string(row.verb_fallback));
  else if (text.type != "bool" && !text.fallback.empty()) made.default_text(text.fallback);
  if (!row.needs.empty()) made.needs(std::string(row.needs));
  if (row.section == "Advanced") made.advanced();
}

void declare_model(Parser& parser, ModelOptions& options, const ModelVerb& verb) {
  std::string help = "folder with config.json and safetensors files";
  if (verb.inputs & onnx_input) help += "; or an ONNX file, or a plan that `cermet compile` made";
  if (verb.inputs & graph_input) help += "; or a graph as text, FILE.graph";
  parser.option("MODEL", options.model, help).required();
}

void declare_device(Parser& parser, std::string& device, int& threads, const std::string& help) {
  parser.section("Device");
  const OptionTable& table = engine_option_table();
  OptionRow row = table.at("device");
  row.help = help;
  declare_option(parser, row, table, &device);
  declare_option(parser, table.at("threads"), table, &threads);
}

void declare_model_options(Parser& parser, ModelOptions& options, const ModelVerb& verb) {
  for (const std::string_view section : {"Model and memory", "Device", "Many devices"}) {
    parser.section(std::string(section), section == "Device" ? any_input : checkpoint_input);
    for (const bool of_every_verb : {true, false}) declare_section(parser, options, verb, section, of_every_verb);
  }
}

void declare_advanced_options(Parser& parser, ModelOptions& options, const ModelVerb& verb) {
  parser.section("Advanced", checkpoint_input);
  declare_section(parser, options, verb, "Advanced", true);
  parser
      .option("--config <CONFIGS>", options.config,
              "configurations that kernels must run in, instead of CERMET_CONFIG: 'KERNEL: field=1,field=2; KERNEL: "
              "...', as `cermet explain op` lists them")
      .advanced();
  declare_section(parser, options, verb, "Advanced", false);
  parser.section("Advanced", verb.inputs);
  declare_mode(parser, options.mode).advanced();
  declare_super_kernel(parser, options.engine.fusion.super_kernel);
}

Input input_of(const std::string& model) {
  return is_onnx(model) ? onnx_input : is_graph(model) ? graph_input : checkpoint_input;
}

void check_context(const ModelOptions& options, std::int64_t tokens, std::string_view what, bool one_sequence) {
  require(options.engine.max_context == 0 || tokens <= options.engine.max_context,
          "{}: expected at most {} tokens (--context), found {}", what, options.engine.max_context, tokens);
  if (options.engine.max_context > 0 || !one_sequence || tokens > default_context)
    return;  // then the cache is as large as the work
  const std::int64_t trained =
      round_up(std::min(load_config(options.model).max_position_embeddings, default_context), engine_block);
  require(tokens <= trained,
          "{}: expected at most {} tokens, as many as the model was trained for (--context {} takes more), found {}",
          what, trained, tokens, tokens);
}

namespace {

EngineOptions engine_options_of(const ModelOptions& options, std::int64_t least_context, std::int64_t max_batch_tokens,
                                std::int64_t sequences) {
  if (!options.config.empty()) {
    ForcedConfigs configs(options.config, "--config");
    require_known_kernels(configs);
    force_configs(std::move(configs));
  }
  EngineOptions made = options.engine;
  for (const OptionRow& row : engine_option_table())
    if (const auto name = options.names.find(row.name); name != options.names.end())
      set_option(row, &made, row.flag.substr(0, row.flag.find(' ')), name->second);
  if (!options.mode.empty()) made.fusion.mode = fusion_mode_named("--mode", options.mode);
  if (!made.fusion.super_kernel.select.empty() || !made.fusion.super_kernel.options.empty())
    checked(made.fusion.super_kernel);
  made.max_sequences = sequences;
  made.max_batch_tokens = std::max(made.max_batch_tokens > 0 ? made.max_batch_tokens : max_batch_tokens, sequences);
  if (made.max_context == 0 && (least_context > default_context || sequences > 1)) made.max_context = least_context;
  return made;
}

void show_progress(Progress& progress, EngineOptions& options) {
  options.on_load = [&](std::int64_t done, std::int64_t total) {
    stop_if_interrupted();
    progress.update(done, total);
  };
}

}  // namespace

Engine load_engine(const ModelOptions& options, std::int64_t least_context, std::int64_t max_batch_tokens,
                   std::int64_t sequences) {
  require(options.engine.data_parallel == 1,
          "--data-parallel: expected it with run --prompts, whose prompts it spreads, found {} without",
          options.engine.data_parallel);
  EngineOptions engine_options = engine_options_of(options, least_context, max_batch_tokens, sequences);
  Progress progress("loading " + options.model);
  show_progress(progress, engine_options);
  {
    Engine engine = Engine::load(options.model, engine_options);
    if (engine.leads()) return engine;
    engine.serve();
  }  // its communicator takes an end by an exception for a failure
  throw EndOfRank{};
}

void load_engines(const ModelOptions& options, std::int64_t least_context, std::int64_t max_batch_tokens,
                  std::int64_t sequences, const std::function<void(Engine&, Communicator& peers)>& body) {
  EngineOptions engine_options = engine_options_of(options, least_context, max_batch_tokens, sequences);
  std::optional<Progress> progress("loading " + options.model);
  show_progress(*progress, engine_options);
  const bool speaks = run_replicas(options.model, engine_options, [&](Engine& engine, Communicator& peers) {
    if (peers.rank() == 0) progress.reset();
    body(engine, peers);
  });
  if (!speaks) throw EndOfRank{};
}

std::vector<std::int32_t> ids_option(const std::string& text) {
  std::vector<std::int32_t> ids = parse_ids("--ids", text);
  require(!ids.empty(), "--ids: expected at least one token id, found none");
  return ids;
}

std::string read_text_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) fail(Status::io, "{}: expected a file, found a folder", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(Status::io, "{}: expected a readable file, found: {}", path, std::strerror(errno));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (file.bad()) fail(Status::io, "{}: expected to read the whole file, found: {}", path, std::strerror(errno));
  return text;
}

std::string_view first_characters(std::string_view text, std::int64_t characters) {
  if (characters == 0) return text;
  std::int64_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80 && seen++ == characters) return text.substr(0, i);
  return text;
}

std::string describe(const Engine& engine) {
  return fmt::format("{}, {}, {}", engine.config().architecture_name, name_of(engine.dtype()), engine.device_name());
}

}  // namespace cermet::cli
