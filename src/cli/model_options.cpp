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

RopeFrequencies parse_rope_frequencies(const std::string& name) {
  return name == "stored" ? RopeFrequencies::stored : RopeFrequencies::exact;
}

}  // namespace

void declare_model(Parser& parser, ModelOptions& options, const ModelVerb& verb) {
  std::string help = "folder with config.json and safetensors files";
  if (verb.inputs & onnx_input) help += "; or an ONNX file, or a plan that `cermet compile` made";
  if (verb.inputs & graph_input) help += "; or a graph as text, FILE.graph";
  parser.option("MODEL", options.model, help).required();
}

void declare_device(Parser& parser, std::string& device, int& threads, const std::string& help) {
  parser.section("Device");
  parser.option("--device <DEVICE>", device, help).suggests({"cpu", "cuda", "null:sm_90"}).show_default();
  parser.option("--threads", threads, "threads of the CPU; 0: one for each core").range(0, 1024).show_default();
}

void declare_model_options(Parser& parser, ModelOptions& options, const ModelVerb& verb) {
  parser.section("Model and memory", checkpoint_input);
  parser
      .option("--dtype <TYPE>", options.dtype,
              "type of the KV cache, and of GEMM operands where that is faster; also fp16, float16, bfloat16, float32")
      .suggests({"f32", "bf16", "f16"})
      .default_text("the checkpoint's");
  parser
      .option("--weights <TYPE>", options.weights,
              "storage of weights; int8 and fp8 quantize weights per row while loading, and activations per token")
      .suggests({"f32", "bf16", "f16", "int8", "fp8"})
      .default_text("the checkpoint's");
  parser.option("--kv-cache <TYPE>", options.kv_cache, "storage of keys and values, with scales per token and head")
      .suggests({"int8", "fp8"})
      .default_text("that of --dtype");
  parser.option("--context", options.context, "tokens that the KV cache holds")
      .range(std::int64_t{1}, std::int64_t{1} << 30)
      .default_text("what the work needs, at least 4096");
  parser
      .option("--max-batch-tokens", options.max_batch_tokens,
              "tokens of one pass: more read weights less often and take more memory")
      .range(std::int64_t{1}, std::int64_t{1} << 20)
      .default_text("512");
  declare_device(parser, options.device, options.threads,
                 "cuda:1 is the second GPU; null runs every step without computing, null:sm_90 as for such a GPU");
  parser.section("Many devices", checkpoint_input);
  parser
      .option("--tensor-parallel", options.tensor_parallel,
              "ranks that share each matrix: groups of threads, GPUs, or processes of `cermet launch`")
      .range(1, 1024)
      .show_default();
  parser.option("--expert-parallel", options.expert_parallel, "ranks that hold different experts of a mixture")
      .range(1, 1024)
      .show_default();
  if (!verb.replicates) return;
  parser.option("--data-parallel", options.data_parallel, "engines that take prompts of their own")
      .range(1, 1024)
      .show_default()
      .needs("--prompts");
}

void declare_advanced_options(Parser& parser, ModelOptions& options, const ModelVerb& verb) {
  parser.section("Advanced", checkpoint_input);
  parser.option("--head <TYPE>", options.head, "storage of the output head; costs a little quality: see `cermet eval`")
      .suggests({"int8", "fp8"})
      .default_text("the checkpoint's")
      .advanced();
  parser
      .flag("--compact-weights", options.compact_weights,
            "CUDA only: keep a second, 12-bit copy of bf16 weights for single-token decode")
      .advanced();
  parser
      .option("--rope-frequencies <HOW>", options.rope_frequencies,
              "exact: float32; stored: rounded to the checkpoint's type, as model.to(dtype) does")
      .values({"exact", "stored"})
      .show_default()
      .advanced();
  parser
      .option("--config <CONFIGS>", options.config,
              "configurations that kernels must run in, instead of CERMET_CONFIG: 'KERNEL: field=1,field=2; KERNEL: "
              "...', as `cermet explain op` lists them")
      .advanced();
  if (verb.decodes)
    parser
        .option(
            "--steps-per-launch", options.steps_per_launch,
            "decode steps in a row without the host; not with ranks that share a model, nor with a repetition penalty")
        .range(std::int64_t{1}, most_steps_per_launch)
        .show_default()
        .advanced();
  if (verb.replicates) {
    parser
        .option("--expert-exchange <HOW>", options.expert_exchange,
                "how tokens reach their experts: rows on the CPU, gather on GPUs")
        .values({"rows", "gather"})
        .needs("--data-parallel")
        .advanced();
    parser
        .flag("--overlap-experts", options.overlap_experts,
              "send one half of a pass's tokens while the other half is computed")
        .needs("--data-parallel")
        .advanced();
  }
  parser.section("Advanced", verb.inputs);
  declare_mode(parser, options.mode).advanced();
  declare_super_kernel(parser, options.super_kernel);
}

Input input_of(const std::string& model) {
  return is_onnx(model) ? onnx_input : is_graph(model) ? graph_input : checkpoint_input;
}

void check_context(const ModelOptions& options, std::int64_t tokens, std::string_view what, bool one_sequence) {
  require(options.context == 0 || tokens <= options.context, "{}: expected at most {} tokens (--context), found {}",
          what, options.context, tokens);
  if (options.context > 0 || !one_sequence || tokens > default_context)
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
  if (!options.super_kernel.select.empty() || !options.super_kernel.options.empty())
    engine_options.fusion.super_kernel = checked(options.super_kernel);
  engine_options.rope_frequencies = parse_rope_frequencies(options.rope_frequencies);
  engine_options.max_sequences = sequences;
  engine_options.max_batch_tokens =
      std::max(options.max_batch_tokens > 0 ? options.max_batch_tokens : max_batch_tokens, sequences);
  engine_options.all_logits = options.all_logits;
  engine_options.max_context = options.context;
  if (options.context == 0 && (least_context > default_context || sequences > 1))
    engine_options.max_context = least_context;
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

Engine load_engine(const ModelOptions& options, std::int64_t least_context, std::int64_t max_batch_tokens,
                   std::int64_t sequences) {
  require(options.data_parallel == 1,
          "--data-parallel: expected it with run --prompts, whose prompts it spreads, found {} without",
          options.data_parallel);
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
