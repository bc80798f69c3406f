// cermet run: continues a prompt, or a conversation line by line; runs an ONNX file.
#include <unistd.h>

#include <iostream>

#include "base/utf8_text.hpp"
#include "cli/graph_file.hpp"
#include "cli/model_options.hpp"
#include "cli/run_prompts.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/process.hpp"
#include "model/conversation.hpp"
#include "model/engine_options.hpp"
#include "runtime/explain.hpp"

namespace cermet::cli::run_verb {
namespace {

struct Options {
  ModelOptions model;
  std::optional<std::string> prompt, ids, prompts;
  std::int64_t batch = 1;
  GenerateOptions generate;
  OnnxOptions onnx;
};

/// Prompt and answer of one turn.
struct Turn {
  std::vector<std::int32_t> prompt;
  Generation generation;
  std::string text;
};

class Runner {
 public:
  Runner(const Options& options, Console& console)
      : options_(options),
        console_(console),
        config_(load_config(options.model.model)),
        tokenizer_(find_tokenizer(options.model.model)) {
    check_sampling(options.generate.sampling);
  }

  void load(std::int64_t prompt_tokens) {
    engine_.emplace(load_engine(options_.model, prompt_tokens + options_.generate.max_new_tokens));
    conversation_.emplace(*engine_);
  }

  std::vector<std::int32_t> encode(const std::string& text, bool first) {
    if (!tokenizer_)
      fail(Status::io, "{}: expected a tokenizer.json for a prompt in words, found none; --ids takes token ids",
           options_.model.model);
    require_utf8(text, "prompt");
    return tokenizer_->encode(text, first);
  }

  /// Throws Error naming the first id that the model does not know; reads no weights.
  void check_prompt(std::span<const std::int32_t> prompt) const { check_ids(prompt, config_.vocab_size); }

  Turn run(std::vector<std::int32_t> prompt) {
    check_prompt(prompt);
    GenerateOptions generate_options = options_.generate;
    generate_options.stop_at_eos(engine_->config());
    generate_options.cancelled = &interrupted();
    std::optional<StreamDecoder> decoder;
    if (tokenizer_) decoder.emplace(*tokenizer_, true);
    Turn turn{std::move(prompt), {}, {}};
    const auto emit = [&](std::string_view piece) {
      turn.text += piece;
      if (console_.json() || piece.empty()) return;
      console_.write(piece);
      console_.flush();
    };
    turn.generation = conversation_->go_on(turn.prompt, generate_options, [&](std::int32_t id) {
      emit(decoder ? decoder->push(id) : fmt::format("{} ", id));
    });
    if (decoder) emit(decoder->finish());
    if (!console_.json()) console_.write("\n");
    return turn;
  }

  Engine& engine() { return *engine_; }
  bool has_tokenizer() const { return tokenizer_.has_value(); }

 private:
  const Options& options_;
  Console& console_;
  ModelConfig config_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<Engine> engine_;
  std::optional<Conversation> conversation_;
};

std::string kernels_text(const Engine& engine, bool prefill) {
  std::string text;
  for (const KernelUse& use : kernels_used(engine.steps(prefill)))
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", use.kernel, use.launches);
  return text;
}

/// What ran and how fast, for standard error.
void print_summary(Console& console, Engine& engine, const Generation& g) {
  Table table;
  table.row({"model", describe(engine)});
  table.row(
      {"prefill", fmt::format("{}, {:.1f} tokens/s", plural(g.prompt_tokens, "token"), g.prefill_tokens_per_second())});
  const std::string rate = g.ids.size() > 1 ? fmt::format(", {:.1f} tokens/s", g.decode_tokens_per_second())
                                            : "";  // the first comes with the prefill
  table.row({"decode", fmt::format("{}{} (ended by {})", plural(std::ssize(g.ids), "token"), rate, name_of(g.end))});
  table.row({"memory",
             fmt::format("{} at the peak; weights {}, cache {}", bytes_text(static_cast<double>(peak_memory_bytes())),
                         bytes_text(static_cast<double>(engine.weight_bytes())),
                         bytes_text(static_cast<double>(engine.cache_bytes())))});
  table.row({"kernels", kernels_text(engine, false)});
  if (g.prompt_tokens > 32) table.row({"", kernels_text(engine, true) + " (prefill)"});
  console.note("\n" + table.to_string());
}

Json to_json(Runner& runner, const Turn& turn) {
  const Generation& g = turn.generation;
  return {{"prompt_ids", turn.prompt},
          {"ids", g.ids},
          {"text", runner.has_tokenizer() ? Json(turn.text) : Json(nullptr)},
          {"end", name_of(g.end)},
          {"prefill_tokens_per_second", g.prefill_tokens_per_second()},
          {"decode_tokens_per_second", g.decode_tokens_per_second()},
          {"peak_memory_bytes", peak_memory_bytes()},
          {"device", runner.engine().device_name()},
          {"dtype", name_of(runner.engine().dtype())}};
}

/// Both turns as one, for a summary of all.
void add(Generation& total, const Generation& turn) {
  total.prompt_tokens += turn.prompt_tokens;
  total.prefill_seconds += turn.prefill_seconds;
  total.decode_seconds += turn.decode_seconds;
  total.ids.insert(total.ids.end(), turn.ids.begin(), turn.ids.end());
  total.end = turn.end;
}

/// Prompts line by line. From a terminal the context is kept and answers follow what was typed; otherwise each line is
/// printed before its answer, as with -p.
void interactive(Runner& runner, Console& console) {
  runner.load(0);
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal)
    console.note("Type a prompt; the context is kept from line to line. Ctrl-C stops an answer, Ctrl-D ends.\n");
  std::string line;
  bool first = true;
  Generation total;
  stop_at_own_pace();
  for (;;) {
    if (terminal) console.note("> ");
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    catch_interrupts();
    std::vector<std::int32_t> prompt = runner.encode(line, first);
    runner.check_prompt(prompt);
    if (!terminal && !console.json()) console.write(line);
    const Turn turn = runner.run(std::move(prompt));
    if (console.json()) console.write_json(to_json(runner, turn));
    console.flush();
    add(total, turn.generation);
    first = false;
  }
  if (!terminal && !console.json() && total.prompt_tokens > 0) print_summary(console, runner.engine(), total);
}

void run(const Options& options, Console& console) {
  if (is_onnx(options.model.model) || is_graph(options.model.model)) {
    OnnxOptions onnx = with_model(options.onnx, options.model);
    onnx.seed = options.generate.sampling.seed;
    return is_graph(onnx.model) ? run_graph(onnx, console) : run_onnx(onnx, console);
  }
  require(options.prompt.has_value() + options.ids.has_value() + options.prompts.has_value() <= 1,
          "prompt: expected one of -p, --ids and --prompts, found several");
  if (options.prompts) return run_prompts({options.model, *options.prompts, options.batch, options.generate}, console);
  Runner runner(options, console);
  if (!options.prompt && !options.ids) return interactive(runner, console);
  std::vector<std::int32_t> prompt = options.prompt ? runner.encode(*options.prompt, true) : ids_option(*options.ids);
  require(!prompt.empty(), "prompt: expected at least one token, found none");
  runner.check_prompt(prompt);
  check_context(options.model, static_cast<std::int64_t>(prompt.size()), options.prompt ? "-p" : "--ids");
  runner.load(static_cast<std::int64_t>(prompt.size()));
  if (!console.json() && options.prompt) console.write(*options.prompt);
  const Turn turn = runner.run(std::move(prompt));
  if (console.json()) console.write_json(to_json(runner, turn));
  else print_summary(console, runner.engine(), turn.generation);
  console.flush();
  if (turn.generation.end == Generation::End::cancelled)
    fail(Status::cancelled, "generation: stopped after {} tokens", turn.generation.ids.size());
}

Action declare(Parser& parser) {
  const auto options = std::make_shared<Options>();
  const ModelVerb verb{.inputs = any_input, .decodes = true, .replicates = true};
  const OptionTable& generating = generate_option_table();
  const auto declare = [&](const OptionRow& row) {
    declare_option(parser, row, generating, row.field(&options->generate));
  };
  declare_model(parser, options->model, verb);
  parser.section("Prompt", checkpoint_input);
  parser.option("-p,--prompt <TEXT>", options->prompt,
                "text to continue, as it is: no chat template is applied; without it, lines of standard input");
  declare(generating.at("max_new_tokens"));
  parser.option("--ids <IDS>", options->ids, "token ids to continue, separated by commas");
  parser.option("--prompts <FILE.jsonl>", options->prompts,
                "a prompt on each line: {\"prompt\": \"...\"} or {\"ids\": [...]}, optionally with \"id\", "
                "\"max_new_tokens\" and \"seed\"");
  parser.option("--batch", options->batch, "prompts of --prompts that run at a time")
      .range(1, 4096)
      .show_default()
      .needs("--prompts");
  declare(generating.at("ignore_eos"));
  parser.section("Sampling", checkpoint_input);
  for (const OptionRow& row : generating)
    if (row.section == "Sampling") declare(row);
  parser.section("Sampling");
  declare(generating.at("seed"));
  declare_model_options(parser, options->model, verb);
  declare_onnx_options(parser, options->onnx);
  parser.option("-o,--output <DIR>", options->onnx.output, "folder for NAME.npy of every result");
  declare_advanced_options(parser, options->model, verb);
  return [options, given = parser.given()](Console& console) {
    given->check_input(input_of(options->model.model), options->model.model);
    run(*options, console);
  };
}

}  // namespace

Verb verb() {
  return {"run", "continue a prompt with a model, or run an ONNX file",
          "cermet run models/demo -p \"The PostgreSQL server\" -n 64\n"
          "cermet run models/demo -p \"To install\" --temperature 0.8 --top-p 0.95 --seed 7\n"
          "cermet run models/demo --ids 497,2314,1581 -n 8 --json\n"
          "cermet run models/demo --prompts prompts.jsonl --batch 8 --json\n"
          "cermet run models/demo_onnx/classifier.onnx --dim batch=2\n"
          "cermet run FILE.onnx --input x=x.npy -o results",
          declare};
}

}  // namespace cermet::cli::run_verb
