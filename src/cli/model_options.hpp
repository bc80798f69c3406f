// Options that every verb which loads a model has, and the loaded model.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/option.hpp"
#include "cli/tokens.hpp"
#include "cli/verb.hpp"
#include "kernel/communicator.hpp"
#include "model/engine.hpp"

namespace cermet::cli {

struct ModelOptions {
  std::string model, config, mode;
  /// But for options of names and element types, which are checked when the engine is loaded. 0 tokens of a pass are
  /// as many as the verb has.
  EngineOptions engine;
  std::map<std::string_view, std::string> names;  ///< of those by the names of their rows

  ModelOptions() { engine.max_batch_tokens = 0, engine.all_logits = false; }
};

/// Thrown by load_engine() in a process that is not the first of its world, when that has ended: the verb is done.
struct EndOfRank {};

/// What a verb takes as MODEL, and which options it has beside those of every verb that loads one.
struct ModelVerb {
  unsigned inputs = checkpoint_input;
  bool decodes = false;     ///< --steps-per-launch
  bool replicates = false;  ///< --data-parallel, --expert-exchange, --overlap-experts
};
/// Declares MODEL.
void declare_model(Parser& parser, ModelOptions& options, const ModelVerb& verb);
/// Declares options in the sections Model and memory, Device, and Many devices.
void declare_model_options(Parser& parser, ModelOptions& options, const ModelVerb& verb);
/// Declares those that few need, in the section Advanced.
void declare_advanced_options(Parser& parser, ModelOptions& options, const ModelVerb& verb);
/// Declares --device and --threads, in the section Device.
void declare_device(Parser& parser, std::string& device, int& threads,
                    const std::string& help = "cuda:1 is the second GPU");
/// Declares the option of a row, which is stored in a field, or where it is one of names or element types, in `name`.
void declare_option(Parser& parser, const OptionRow& row, const OptionTable& table, const OptionField& stored,
                    std::string* name = nullptr);
/// The kind of MODEL, by its name.
Input input_of(const std::string& model);
/// Throws Error where the cache would hold fewer tokens than `what` has: those of --context, or as many as the model
/// was trained for; reads no weight.
void check_context(const ModelOptions& options, std::int64_t tokens, std::string_view what, bool one_sequence = true);
/// Loads the model, with a progress bar on a terminal; on other ranks than the first computes until that ends, and
/// throws EndOfRank. `least_context`: tokens that must fit where --context was not given, over all sequences.
/// `max_batch_tokens`: of a pass where --max-batch-tokens was not given.
Engine load_engine(const ModelOptions& options, std::int64_t least_context = 0, std::int64_t max_batch_tokens = 512,
                   std::int64_t sequences = 1);
/// Loads as many engines as --data-parallel says, each as load_engine() does, and calls body(engine, peers) with each,
/// in threads of their own; of several processes throws EndOfRank in those that are not the first.
void load_engines(const ModelOptions& options, std::int64_t least_context, std::int64_t max_batch_tokens,
                  std::int64_t sequences, const std::function<void(Engine&, Communicator& peers)>& body);
/// The value of --ids: one token id or more. Throws Error naming what is none.
std::vector<std::int32_t> ids_option(const std::string& text);
/// Reads a whole file. Throws Error(io) naming it.
std::string read_text_file(const std::string& path);
/// The first `characters` code points of UTF-8 text; all of it where `characters` is 0. A broken byte counts as one.
std::string_view first_characters(std::string_view text, std::int64_t characters);
/// "Qwen3MoeForCausalLM, bf16, cpu (2 threads, avx512_bf16)".
std::string describe(const Engine& engine);

}  // namespace cermet::cli
