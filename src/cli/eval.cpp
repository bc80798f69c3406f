// cermet eval: perplexity of a model on a text file.
#include "base/utf8_text.hpp"
#include "cli/model_options.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/progress.hpp"
#include "model/generate.hpp"

namespace cermet::cli::eval_verb {
namespace {

struct Options {
  ModelOptions model;
  std::string text;
  std::int64_t window = 512, characters = 0;
};

void evaluate_file(const Options& options, Console& console) {
  const ModelConfig config = load_config(options.model.model);
  const std::string bytes = read_text_file(options.text);
  const std::string_view text = text_of_file(bytes, options.text);
  const Tokenizer tokenizer = load_tokenizer(options.model.model, "a text file");
  const std::vector<std::int32_t> ids = tokenizer.encode(first_characters(text, options.characters), false);
  require(static_cast<std::int64_t>(ids.size()) >= options.window,
          "{}: expected at least one window of {} tokens, found {} tokens", options.text, options.window, ids.size());
  check_ids(ids, config.vocab_size);
  check_context(options.model, options.window, "--window");
  Engine engine = load_engine(options.model, options.window, std::min<std::int64_t>(options.window, 512));
  Progress progress("windows");
  const Perplexity result = evaluate(engine, ids, options.window, &interrupted(),
                                     [&](std::int64_t done, std::int64_t total) { progress.update(done, total); });
  if (console.json()) {
    console.write_json({{"perplexity", result.value},
                        {"standard_error", result.standard_error},
                        {"tokens", result.tokens},
                        {"window", options.window},
                        {"tokens_per_second", static_cast<double>(result.tokens) / result.seconds},
                        {"dtype", name_of(engine.dtype())}});
    return;
  }
  console.print("perplexity {:.4f} +- {:.4f} over {} tokens in windows of {}\n", result.value, result.standard_error,
                result.tokens, options.window);
  console.note(
      fmt::format("{}; {:.0f} tokens/s\n", describe(engine), static_cast<double>(result.tokens) / result.seconds));
}

Action declare(Parser& parser) {
  const auto options = std::make_shared<Options>();
  declare_model(parser, options->model, {});
  options->model.engine.all_logits = true;
  parser.section("Text");
  parser.option("--text <FILE>", options->text, "UTF-8 text file").required();
  parser
      .option("--window", options->window,
              "tokens of a window; every token but its first is scored, a tail that fills none is dropped")
      .range(std::int64_t{2}, std::int64_t{1} << 30)
      .show_default();
  parser.option("--chars", options->characters, "use the first this many characters only; 0: all")
      .range(std::int64_t{0}, std::int64_t{1} << 60)
      .show_default();
  declare_model_options(parser, options->model, {});
  declare_advanced_options(parser, options->model, {});
  return [options](Console& console) { evaluate_file(*options, console); };
}

}  // namespace

Verb verb() {
  return {"eval", "measure a model's perplexity on a text file",
          "cermet eval models/demo --text models/demo/heldout.txt --chars 40000", declare};
}

}  // namespace cermet::cli::eval_verb
