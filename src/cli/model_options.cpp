#include "cli/model_options.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/interrupt.hpp"
#include "cli/progress.hpp"

namespace cermet::cli {
namespace {

constexpr std::int64_t default_context = 4096;

std::optional<DType> dtype_option(const std::string& option, const std::string& name, DTypeSet allowed) {
  if (name.empty()) return std::nullopt;
  const auto dtype = dtype_from_name(name);
  require(dtype && allowed.contains(*dtype), "{}: expected {}, found '{}'", option, allowed.to_string(), name);
  return dtype;
}

std::optional<DType> parse_kv_cache(const std::string& name) {
  if (name.empty()) return std::nullopt;
  require(name == "int8" || name == "fp8", "--kv-cache: expected int8 or fp8, found '{}'", name);
  return name == "int8" ? DType::i8 : DType::f8_e4m3;
}

RopeFrequencies parse_rope_frequencies(const std::string& name) {
  require(name == "stored" || name == "exact", "--rope-frequencies: expected stored or exact, found '{}'", name);
  return name == "exact" ? RopeFrequencies::exact : RopeFrequencies::stored;
}

}  // namespace

void declare_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option("MODEL", options.model, "folder with config.json, safetensors files and tokenizer.json")->required();
  app.add_option("--device", options.device,
                 "cpu, cuda (or cuda:1, the second GPU), or null, which goes through every step and computes nothing; null:sm_90 compiles for such a GPU")
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "type of the KV cache, and of matrix operands where that buys speed: f32, bf16 or f16; the checkpoint's by default");
  app.add_option("--weights", options.weights,
                 "storage of weight matrices: f32, bf16, f16, or i8 and f8_e4m3, which quantize rows as they load and tokens as they come; as in the "
                 "checkpoint by default");
  app.add_option("--kv-cache", options.kv_cache, "storage of keys and values: int8, with a scale for each token and head, or fp8; --dtype's by default");
  app.add_option("--threads", options.threads, "worker threads; 0: one for each core")->check(CLI::Range(0, 1024))->capture_default_str();
  app.add_option("--context", options.context,
                 "tokens that the KV cache holds; by default what the work needs, 4096 at least or as many as the model was made for")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30));
  app.add_option("--rope-frequencies", options.rope_frequencies, "stored: rounded to the checkpoint's element type, as model.to(dtype) does; exact: float32")
      ->capture_default_str();
}

void check_context(const ModelOptions& options, std::int64_t tokens, std::string_view what) {
  require(options.context == 0 || tokens <= options.context, "{}: expected at most {} tokens (--context), found {}", what, options.context, tokens);
}

Engine load_engine(const ModelOptions& options, std::int64_t least_context, std::int64_t max_batch_tokens) {
  EngineOptions engine_options;
  engine_options.device = options.device;
  engine_options.dtype = dtype_option("--dtype", options.dtype, dtypes::real);
  engine_options.weights = dtype_option("--weights", options.weights, dtypes::real | DTypeSet{DType::i8, DType::f8_e4m3});
  engine_options.kv_cache = parse_kv_cache(options.kv_cache);
  engine_options.threads = options.threads;
  engine_options.rope_frequencies = parse_rope_frequencies(options.rope_frequencies);
  engine_options.max_batch_tokens = max_batch_tokens;
  engine_options.max_context = options.context;
  if (options.context == 0 && least_context > default_context) engine_options.max_context = least_context;
  Progress progress("loading " + options.model);
  engine_options.on_load = [&](std::int64_t done, std::int64_t total) {
    stop_if_interrupted();
    progress.update(done, total);
  };
  return Engine::load(options.model, engine_options);
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
