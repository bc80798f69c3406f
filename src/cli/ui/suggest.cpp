#include "cli/ui/suggest.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.hpp"

namespace cermet::cli {
namespace {

struct ForeignName {
  std::string_view theirs, ours;
};

/// Of vLLM, transformers, llama.cpp, onnxruntime, OpenAI's interface, and of earlier versions of Cermet. The first that
/// the verb has is meant.
constexpr ForeignName foreign_options[] = {
    {"--max-tokens", "--new-tokens"},
    {"--max-new-tokens", "--new-tokens"},
    {"--max_tokens", "--new-tokens"},
    {"--max_new_tokens", "--new-tokens"},
    {"--max-length", "--new-tokens"},
    {"--n-predict", "--new-tokens"},
    {"--n_predict", "--new-tokens"},
    {"--predict", "--new-tokens"},
    {"--num-predict", "--new-tokens"},
    {"--output-len", "--new-tokens"},
    {"--n-gen", "--new-tokens"},
    {"--input-len", "--prompt-tokens"},
    {"--n-prompt", "--prompt-tokens"},
    {"--prompt-file", "--prompts"},
    {"--prompts-file", "--prompts"},
    {"--input-file", "--prompts"},
    {"--file", "--prompts"},
    {"--temp", "--temperature"},
    {"--repeat-penalty", "--repetition-penalty"},
    {"--topk", "--top-k"},
    {"--topp", "--top-p"},
    {"--minp", "--min-p"},
    {"--rng-seed", "--seed"},
    {"--ctx-size", "--context"},
    {"--ctx", "--context"},
    {"--n-ctx", "--context"},
    {"--max-model-len", "--context"},
    {"--context-length", "--context"},
    {"--max-num-batched-tokens", "--max-batch-tokens"},
    {"--ubatch-size", "--max-batch-tokens"},
    {"--batch-size", "--batch"},
    {"--max-num-seqs", "--batch"},
    {"--parallel", "--batch"},
    {"--n-gpu-layers", "--device"},
    {"--gpu-layers", "--device"},
    {"--gpu", "--device"},
    {"--cuda", "--device"},
    {"--execution-provider", "--device"},
    {"--provider", "--device"},
    {"--cache-type-k", "--kv-cache"},
    {"--kv-cache-dtype", "--kv-cache"},
    {"--quantization", "--weights"},
    {"--torch-dtype", "--dtype"},
    {"--precision", "--dtype"},
    {"--type", "--dtype"},
    {"--tensor-parallel-size", "--tensor-parallel"},
    {"--tp", "--tensor-parallel"},
    {"--data-parallel-size", "--data-parallel"},
    {"--dp", "--data-parallel"},
    {"--enable-expert-parallel", "--expert-parallel"},
    {"--ep", "--expert-parallel"},
    {"--num-threads", "--threads"},
    {"--n-threads", "--threads"},
    {"--intra-op-num-threads", "--threads"},
    {"--model", "<MODEL>"},
    {"--checkpoint", "<MODEL>"},
    {"--out", "--output"},
    {"--output-dir", "--output"},
    {"--out-dir", "--output"},
    {"--out-file", "--output"},
    {"--outfile", "--output"},
    {"--save", "--output"},
    {"--calibration", "--calib"},
    {"--dataset", "--calib"},
    {"--recipe", "--policy"},
    {"--iterations", "--repeat"},
    {"--num-iters", "--repeat"},
    {"--duration", "--seconds"},
    {"--shapes", "--shape"},
    {"--inputs", "--input"},
    {"--profile", "--trace"},
    {"--world-size", "--ranks"},
    {"--nproc-per-node", "--ranks"},
    {"--explain", "cermet explain op"},
    {"--space", "cermet explain op --space"},
    {"--verbose", "CERMET_LOG=debug in the environment"},
    {"-v", "CERMET_LOG=debug in the environment"},
    {"-ngl", "--device"},
    {"-np", "--batch"},
    {"-ctk", "--kv-cache"},
    {"-tp", "--tensor-parallel"},
    {"-ub", "--max-batch-tokens"},
    {"-temp", "--temperature"},
    {"-m", "<MODEL>"},
    {"-c", "--context"},
    {"-t", "--threads"},
    {"-b", "--max-batch-tokens"},
    {"-f", "--prompts"},
    {"-s", "--seed"},
    {"-d", "--device"},
};

constexpr ForeignName foreign_commands[] = {
    {"serve", "run"},
    {"server", "run"},
    {"chat", "run"},
    {"generate", "run"},
    {"complete", "run"},
    {"completions", "run"},
    {"infer", "run"},
    {"inference", "run"},
    {"predict", "run"},
    {"cli", "run"},
    {"exec", "run"},
    {"perplexity", "eval"},
    {"ppl", "eval"},
    {"evaluate", "eval"},
    {"score", "eval"},
    {"info", "inspect"},
    {"show", "inspect"},
    {"check", "inspect"},
    {"validate", "inspect"},
    {"dump", "inspect"},
    {"benchmark", "bench"},
    {"perf", "bench"},
    {"profile", "bench"},
    {"latency", "bench"},
    {"throughput", "bench"},
    {"autotune", "tune"},
    {"optimize", "tune"},
    {"compress", "quantize"},
    {"build", "compile"},
    {"import", "compile"},
    {"export", "compile"},
    {"visualize", "explain"},
    {"graph", "explain"},
    {"list", "ops"},
    {"operators", "ops"},
    {"op", "call"},
    {"encode", "tokenize"},
    {"detokenize", "tokenize"},
    {"decode", "tokenize"},
    {"torchrun", "launch"},
    {"mpirun", "launch"},
    {"devices", "env"},
    {"doctor", "env"},
    {"collect-env", "env"},
    {"config", "env"},
    {"kernels", "kernel"},
    {"completions", "completion"},
    {"man", "help"},
};

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > 64) return {};
  const std::string typed = lowered(word);
  const std::size_t letters = typed.size() - std::min(typed.find_first_not_of('-'), typed.size());
  std::size_t least = std::max<std::size_t>(1, letters / 3) + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    const bool is_start =
        letters >= 3 && candidate.size() > typed.size() && candidate.starts_with(typed);  // "--temp", "tok"
    const std::size_t far = is_start ? 1 : edit_distance(typed, candidate);
    if (far < least) least = far, best = candidate;
  }
  return best;
}

std::string command_hint(std::string_view word, std::string_view group) {
  std::vector<std::string> names;
  for (const CommandDoc* member : commands().members(group))
    names.push_back(member->name.substr(member->name.find(' ') + 1));
  std::string found = nearest(word, names);
  if (group.empty())
    for (const ForeignName& name : foreign_commands)
      if (name.theirs == lowered(word) && edit_distance(lowered(word), found) > 1 && commands().find(name.ours)) {
        found = name.ours;
        break;
      }
  if (found.empty()) return {};
  if (word == "serve" || word == "server") return "; did you mean run? Cermet has no server";
  return fmt::format("; did you mean {}{}?", group.empty() ? "" : fmt::format("{} ", group), found);
}

bool is_foreign_option(std::string_view word) {
  return word.size() > 2 && word[0] == '-' && word[1] != '-' &&
         std::ranges::find(foreign_options, word, &ForeignName::theirs) != std::end(foreign_options);
}

std::string option_hint(std::string_view word, const CommandDoc& command) {
  word = word.substr(0, word.find('='));
  std::vector<std::string> names;
  for (const OptionDoc& option : command.options)
    for (const std::string& name : option.names) {
      if (option.is_positional) names.push_back(option.metavar);
      else if (name.starts_with("--")) names.push_back(name);
    }
  const auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  for (const ForeignName& name : foreign_options)
    if (name.theirs == word && (!(name.ours.starts_with('-') || name.ours.starts_with('<')) || has(name.ours)))
      return fmt::format("; did you mean '{}'?", name.ours);
  if (!word.starts_with("--")) return {};
  const std::string found = nearest(word, names);
  if (!found.empty()) return fmt::format("; did you mean '{}'?", found);
  for (const auto& other : commands().all())
    for (const OptionDoc& option : other->options)
      if (!other->is_internal && std::ranges::find(option.names, word) != option.names.end())
        return fmt::format("; it is an option of `{}`", spoken_name(*other));
  return {};
}

}  // namespace cermet::cli
