#include "cli/model_options.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/checked.hpp"
#include "cli/interrupt.hpp"
#include "cli/onnx_model.hpp"
#include "cli/progress.hpp"
#include "model/engine_options.hpp"
#include "model/parallel/replicas.hpp"
#include "select/select.hpp"

namespace cermet::cli {
namespace {

constexpr std::int64_t default_context = 4096, engine_block = 16;  // a context is whole blocks of the cache

RopeFrequencies parse_rope_frequencies(const std::string& name) {
  require(name == "stored" || name == "exact", "--rope-frequencies: expected exact or stored, found '{}'", name);
  return name == "stored" ? RopeFrequencies::stored : RopeFrequencies::exact;
}

}  // namespace

void declare_model_options(Parser& parser, ModelOptions& options) {
  parser
      .option("MODEL", options.model,
              "folder with config.json, safetensors files and tokenizer.json; or an ONNX file or a graph as text (FILE.graph), which take --device, "
              "--threads and the options named so")
      .required();
  parser
      .option("--device", options.device,
              "cpu, cuda (or cuda:1, the second GPU), or null, which runs every step without computing; null:sm_90 compiles for such a GPU")
      .show_default();
  parser.option("--dtype", options.dtype, "type of the KV cache, and of matrix operands where that buys speed: f32, bf16 or f16; the checkpoint's by default");
  parser.option(
      "--weights", options.weights,
      "storage of weight matrices: f32, bf16, f16, or i8 (int8) and f8_e4m3 (fp8), which quantize weights per row while loading and activations per token at "
      "run time; as in the checkpoint by default");
  parser.option("--head", options.head,
                "storage of the head: i8 (int8) or f8_e4m3 (fp8), quantized as weights are; it costs a little quality, which `cermet eval` shows, and stays as "
                "in the checkpoint by default, whatever --weights says");
  parser.flag("--compact-weights", options.compact_weights,
              "with --device cuda: bf16 matrices are held once more in 12 bits an element, which passes of one token read; docs/guide/compact-weights.md");
  parser.option("--kv-cache", options.kv_cache,
                "storage of keys and values: i8 (or int8), with per-token, per-head scales, or f8_e4m3 (or fp8); --dtype's by default");
  parser.option("--threads", options.threads, "worker threads; 0: one for each core").range(0, 1024).show_default();
  parser
      .option("--context", options.context,
              "tokens that the KV cache holds; by default what the work needs, 4096 at least or as many as the model was trained for")
      .range(std::int64_t{1}, std::int64_t{1} << 30);
  parser
      .option(
          "--max-batch-tokens", options.max_batch_tokens,
          "tokens of one pass: longer prompts go in passes of so many. More read weights less often and take more memory; 512 by default, or as many as the "
          "work asks for at once")
      .range(std::int64_t{1}, std::int64_t{1} << 20);
  parser.option("--rope-frequencies", options.rope_frequencies, "exact: float32; stored: rounded to the checkpoint's element type, as model.to(dtype) does")
      .show_default();
  parser.option("--config", options.config,
                "configurations that kernels must run in, in place of CERMET_CONFIG: 'KERNEL: field=1,field=2; KERNEL: ...', as `cermet explain op` lists "
                "them; such a kernel is chosen wherever it takes the work");
  declare_mode(parser, options.mode);
  declare_super_kernel(parser, options.super_kernel);
  parser
      .option(
          "--steps-per-launch", options.steps_per_launch,
          "decoding steps that follow each other without the host: tokens are chosen and fed back on the device, and seen as they are made; what came behind "
          "a stop is taken back. Not with ranks that share a model, nor with a repetition penalty")
      .range(std::int64_t{1}, most_steps_per_launch)
      .show_default();
  parser
      .option("--tensor-parallel", options.tensor_parallel,
              "ranks that share the model's matrices: groups of threads, GPUs, or as many as processes where `cermet launch` or mpirun started several")
      .range(1, 1024)
      .show_default();
  parser
      .option("--expert-parallel", options.expert_parallel,
              "ranks that have different experts of a mixture; alone, all else is whole on each of them; beside --tensor-parallel, which it divides, "
              "those ranks; beside --data-parallel alone, which it divides, neighbours of those engines")
      .range(1, 1024)
      .show_default();
  parser
      .option("--data-parallel", options.data_parallel,
              "of run --prompts: engines that take prompts of their own; groups of threads, or processes, as many as --tensor-parallel says for each")
      .range(1, 1024)
      .show_default();
  parser.option(
      "--expert-exchange", options.expert_exchange,
      "of --expert-parallel beside --data-parallel: rows, which go to the ranks of their experts alone, or gather, where every rank gets all rows; by "
      "default rows on the CPU and gather on GPUs, which take no other");
  parser.flag("--overlap-experts", options.overlap_experts,
              "where rows are exchanged so: half of a pass's tokens are on their way to other ranks while the other half is computed");
}

void check_context(const ModelOptions& options, std::int64_t tokens, std::string_view what, bool one_sequence) {
  require(options.context == 0 || tokens <= options.context, "{}: expected at most {} tokens (--context), found {}", what, options.context, tokens);
  if (options.context > 0 || !one_sequence || tokens > default_context) return;  // then the cache is as large as the work
  const std::int64_t trained = round_up(std::min(load_config(options.model).max_position_embeddings, default_context), engine_block);
  require(tokens <= trained, "{}: expected at most {} tokens, as many as the model was trained for (--context {} takes more), found {}", what, trained, tokens,
          tokens);
}

namespace {

EngineOptions engine_options_of(const ModelOptions& options, std::int64_t least_context, std::int64_t max_batch_tokens, std::int64_t sequences) {
  if (!options.config.empty()) {
    ForcedConfigs configs(options.config, "--config");
    require_known_kernels(configs);
    force_configs(std::move(configs));
  }
  EngineOptions engine_options;
  engine_options.device = options.device;
  engine_options.dtype = operand_type_named("--dtype", options.dtype);
  engine_options.weights = weight_type_named("--weights", options.weights);
  engine_options.head = head_type_named("--head", options.head);
  engine_options.compact_weights = options.compact_weights;
  engine_options.kv_cache = cache_type_named("--kv-cache", options.kv_cache);
  engine_options.threads = options.threads;
  engine_options.fusion = options.fusion;
  if (!options.mode.empty()) engine_options.fusion.mode = fusion_mode_named("--mode", options.mode);
  if (!options.super_kernel.select.empty() || !options.super_kernel.options.empty()) engine_options.fusion.super_kernel = checked(options.super_kernel);
  engine_options.rope_frequencies = parse_rope_frequencies(options.rope_frequencies);
  engine_options.max_sequences = sequences;
  engine_options.max_batch_tokens = std::max(options.max_batch_tokens > 0 ? options.max_batch_tokens : max_batch_tokens, sequences);
  engine_options.all_logits = options.all_logits;
  engine_options.max_context = options.context;
  if (options.context == 0 && (least_context > default_context || sequences > 1)) engine_options.max_context = least_context;
  engine_options.steps_per_launch = options.steps_per_launch;
  engine_options.tensor_parallel = options.tensor_parallel;
  engine_options.expert_parallel = options.expert_parallel;
  engine_options.data_parallel = options.data_parallel;
  engine_options.expert_exchange = expert_exchange_named("--expert-exchange", options.expert_exchange);
  engine_options.overlap_experts = options.overlap_experts;
  return engine_options;
}

void show_progress(Progress& progress, EngineOptions& options) {
  options.on_load = [&](std::int64_t done, std::int64_t total) {
    stop_if_interrupted();
    progress.update(done, total);
  };
}

}  // namespace

Engine load_engine(const ModelOptions& options, std::int64_t least_context, std::int64_t max_batch_tokens, std::int64_t sequences) {
  require(options.data_parallel == 1, "--data-parallel: expected it with run --prompts, whose prompts it spreads, found {} without", options.data_parallel);
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

void load_engines(const ModelOptions& options, std::int64_t least_context, std::int64_t max_batch_tokens, std::int64_t sequences,
                  const std::function<void(Engine&, Communicator& peers)>& body) {
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
