// cermet tokenize: standard input to ids, and ids to text.
#include "base/utf8_text.hpp"
#include "cli/tokens.hpp"
#include "cli/ui/process.hpp"
#include "cli/verb.hpp"

namespace cermet::cli::tokenize_verb {
namespace {

struct Options {
  std::string model;
  bool decode = false, no_special = false;
};

void encode(Console& console, const Tokenizer& tokenizer, const Options& options) {
  const std::string text = read_standard_input();
  require_utf8(text, "standard input");
  const std::vector<std::int32_t> ids = tokenizer.encode(text, !options.no_special);
  if (console.json()) console.write_json({{"ids", ids}});
  else console.print("{}\n", fmt::join(ids, " "));
}

/// Text goes out byte for byte, so that decoding undoes encoding; in JSON, where only UTF-8 can stand, broken bytes
/// become U+FFFD.
void decode(Console& console, const Tokenizer& tokenizer, const Options& options) {
  const std::vector<std::int32_t> ids = parse_ids("standard input", read_standard_input());
  check_ids(ids, tokenizer.vocab_size());
  if (console.json()) console.write_json({{"text", tokenizer.decode(ids, options.no_special)}});
  else console.write(tokenizer.decode_bytes(ids, options.no_special));
}

}  // namespace

Verb verb() {
  return {"tokenize", "turn text on standard input into token ids, or back",
          "  cermet tokenize models/demo < README.md\n"
          "  echo '12, 34, 56' | cermet tokenize models/demo --decode",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser.option("MODEL <DIR>", options->model, "folder with a tokenizer.json").required();
            parser.flag("--decode", options->decode, "read ids (separated by commas or spaces) and print their text");
            parser.flag("--no-special", options->no_special,
                        "add no special tokens around the text; with --decode, leave special tokens out");
            return [options](Console& console) {
              const Tokenizer tokenizer = load_tokenizer(options->model, "its ids");
              if (options->decode) decode(console, tokenizer, *options);
              else encode(console, tokenizer, *options);
            };
          }};
}

}  // namespace cermet::cli::tokenize_verb
