// Options that every verb which loads a model has, and the loaded model with its tokenizer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/verb.hpp"
#include "model/engine.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace cermet::cli {

struct ModelOptions {
  std::string model, device = "cpu", dtype, weights, rope_frequencies = "stored";
  int threads = 0;
  std::int64_t context = 0;
};

/// Declares MODEL, --device, --dtype, --weights, --threads, --context and --rope-frequencies.
void declare_model_options(CLI::App& app, ModelOptions& options);
/// Loads the model, with a progress bar on a terminal. `least_context`: tokens that must fit where --context was not given.
Engine load_engine(const ModelOptions& options, std::int64_t least_context = 0, std::int64_t max_batch_tokens = 512);
/// The folder's tokenizer.json; nothing where there is none.
std::optional<Tokenizer> find_tokenizer(const ModelOptions& options);
/// The same; throws Error where there is none. `needed_for` says why it is wanted.
Tokenizer load_tokenizer(const ModelOptions& options, std::string_view needed_for);

/// "3,17 4" as ids. Throws Error naming what is no id.
std::vector<std::int32_t> parse_ids(const std::string& text);
/// Throws Error(invalid_argument) naming the first id outside the vocabulary.
void check_ids(std::span<const std::int32_t> ids, const ModelConfig& config);
/// Reads a whole file. Throws Error(io) naming it.
std::string read_text_file(const std::string& path);
/// The first `characters` code points of UTF-8 text; all of it where `characters` is 0. A broken byte counts as one.
std::string_view first_characters(std::string_view text, std::int64_t characters);
/// Largest resident memory of this process so far, in bytes.
std::int64_t peak_memory_bytes();
/// "Qwen3MoeForCausalLM, bf16, cpu (2 threads, avx512_bf16)".
std::string describe(const Engine& engine);

}  // namespace cermet::cli
