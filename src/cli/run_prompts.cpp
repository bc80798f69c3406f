#include "cli/run_prompts.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>

#include "base/checked.hpp"
#include "base/utf8_text.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/ui/process.hpp"
#include "io/json_file.hpp"
#include "model/parallel/spread_batch.hpp"

namespace cermet::cli {
namespace {

constexpr std::int64_t block_size = 16;  // a sequence's last cache block may be partly empty

/// A line of the file.
struct Prompt {
  cli::Json id;
  std::string text;  ///< empty where it was given as ids
  BatchRequest request;
};

class PromptFile {
 public:
  PromptFile(const PromptsOptions& options, const ModelConfig& config, const std::optional<Tokenizer>& tokenizer)
      : options_(options), config_(config), tokenizer_(tokenizer) {}

  std::vector<Prompt> read() const {
    const std::string bytes = read_text_file(options_.file);
    const std::string_view text = text_of_file(bytes, options_.file);
    std::vector<Prompt> prompts;
    std::size_t begin = 0;
    for (std::int64_t number = 1; begin < text.size(); ++number) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = text.substr(begin, end - begin);
      begin = end + 1;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      prompts.push_back(parse(line, number, static_cast<std::int64_t>(prompts.size())));
    }
    if (prompts.empty()) fail(Status::invalid_file, "{}: expected at least one prompt, found none", options_.file);
    return prompts;
  }

 private:
  Prompt parse(std::string_view line, std::int64_t number, std::int64_t index) const {
    const std::string where = fmt::format("{}:{}", options_.file, number);
    const JsonDocument document = JsonDocument::parse(line, where);
    Prompt prompt{number, {}, {}};
    GenerateOptions& generate = prompt.request.options;
    generate = options_.generate;
    generate.sampling.seed += static_cast<std::uint64_t>(index);
    generate.stop_at_eos(config_);
    for (const cermet::Json field : document.root().as_object()) {
      if (field.key() == "prompt") prompt.text = std::string(field.as_string());
      else if (field.key() == "ids") prompt.request.prompt = ids_of(field);
      else if (field.key() == "id") prompt.id = id_of(field);
      else if (field.key() == "max_new_tokens")
        generate.max_new_tokens = field.as_integer(0, std::numeric_limits<std::int32_t>::max());
      else if (field.key() == "seed")
        generate.sampling.seed =
            static_cast<std::uint64_t>(field.as_integer(0, std::numeric_limits<std::int64_t>::max()));
      else field.refuse("expected prompt, ids, id, max_new_tokens or seed");
    }
    encode(document.root(), prompt);
    check_context(options_.model, static_cast<std::int64_t>(prompt.request.prompt.size()), where, options_.batch == 1);
    return prompt;
  }

  std::vector<std::int32_t> ids_of(const cermet::Json& list) const {
    std::vector<std::int32_t> ids;
    for (const cermet::Json id : list.as_array())
      ids.push_back(static_cast<std::int32_t>(id.as_integer(0, config_.vocab_size - 1)));
    return ids;
  }

  static cli::Json id_of(const cermet::Json& field) {
    if (field.is(JsonKind::integer)) return field.as_integer();
    if (!field.is(JsonKind::string)) field.unexpected("a string or an integer");
    return std::string(field.as_string());
  }

  void encode(const cermet::Json& root, Prompt& prompt) const {
    const bool has_text = root.find("prompt").has_value(), has_ids = root.find("ids").has_value();
    if (has_text == has_ids)
      root.refuse(fmt::format("expected prompt or ids, found {}", has_text ? "both" : "neither"));
    if (has_text) {
      if (!tokenizer_)
        root.at("prompt").refuse(fmt::format("expected ids, because {} has no tokenizer.json", options_.model.model));
      prompt.request.prompt = tokenizer_->encode(prompt.text, true);
    }
    if (prompt.request.prompt.empty())
      root.at(has_text ? "prompt" : "ids").refuse("expected at least one token, found none");
    check_ids(prompt.request.prompt, config_.vocab_size);
  }

  const PromptsOptions& options_;
  const ModelConfig& config_;
  const std::optional<Tokenizer>& tokenizer_;
};

/// Results in the order of the file: the first unfinished prompt streams, output of later ones waits.
class Output {
 public:
  Output(const std::vector<Prompt>& prompts, const std::optional<Tokenizer>& tokenizer, Console& console)
      : prompts_(prompts), console_(console), pieces_(prompts.size()) {
    for (std::size_t i = 0; i < prompts.size(); ++i)
      if (tokenizer) pieces_[i].decoder.emplace(*tokenizer, true);
    if (!console.json()) begin();
  }

  void add(std::size_t i, std::int32_t id) {
    Piece& piece = pieces_[i];
    piece.text += piece.decoder ? piece.decoder->push(id) : fmt::format("{} ", id);
    if (i == next_) stream();
  }

  void end(std::size_t i, const Generation& result) {
    Piece& piece = pieces_[i];
    if (piece.decoder) piece.text += piece.decoder->finish();
    piece.result = result;
    while (next_ < pieces_.size() && pieces_[next_].result) {
      stream();
      if (console_.json()) console_.write_json(line_of(next_));
      else console_.write("\n");
      pieces_[next_] = {};
      if (++next_ < pieces_.size() && !console_.json()) begin();
      console_.flush();
    }
  }

 private:
  struct Piece {
    std::optional<StreamDecoder> decoder;
    std::string text;
    std::size_t written = 0;
    std::optional<Generation> result;
  };

  void begin() {
    console_.print("[{}] {}",
                   prompts_[next_].id.is_string() ? prompts_[next_].id.get<std::string>() : prompts_[next_].id.dump(),
                   prompts_[next_].text);
  }

  void stream() {
    if (console_.json()) return;
    Piece& piece = pieces_[next_];
    if (piece.written == piece.text.size()) return;
    console_.write(std::string_view(piece.text).substr(piece.written));
    console_.flush();
    piece.written = piece.text.size();
  }

  cli::Json line_of(std::size_t i) const {
    const Piece& piece = pieces_[i];
    return {{"id", prompts_[i].id},
            {"prompt_tokens", piece.result->prompt_tokens},
            {"ids", piece.result->ids},
            {"text", piece.decoder ? cli::Json(piece.text) : cli::Json(nullptr)},
            {"end", name_of(piece.result->end)}};
  }

  const std::vector<Prompt>& prompts_;
  Console& console_;
  std::vector<Piece> pieces_;
  std::size_t next_ = 0;
};

/// Tokens of cache for the `batch` requests that need most.
std::int64_t context_for(const std::vector<Prompt>& prompts, std::int64_t batch, const ModelConfig& config) {
  std::vector<std::int64_t> needs;
  for (const Prompt& prompt : prompts)
    needs.push_back(round_up(
        std::min(static_cast<std::int64_t>(prompt.request.prompt.size()) + prompt.request.options.max_new_tokens,
                 std::max(config.max_position_embeddings, static_cast<std::int64_t>(prompt.request.prompt.size()))),
        block_size));
  std::sort(needs.rbegin(), needs.rend());
  return std::accumulate(needs.begin(), needs.begin() + std::min<std::ptrdiff_t>(batch, std::ssize(needs)),
                         std::int64_t{0});
}

}  // namespace

void run_prompts(const PromptsOptions& options, Console& console) {
  check_sampling(options.generate.sampling);
  const ModelConfig config = load_config(options.model.model);
  const std::optional<Tokenizer> tokenizer = find_tokenizer(options.model.model);
  std::vector<Prompt> prompts = PromptFile(options, config, tokenizer).read();
  const std::int64_t sequences = std::min(options.batch, static_cast<std::int64_t>(prompts.size())),
                     context = context_for(prompts, sequences, config);
  std::vector<BatchRequest> requests;
  for (Prompt& prompt : prompts) requests.push_back(std::move(prompt.request));
  load_engines(options.model, context, 512, sequences, [&](Engine& engine, Communicator& peers) {
    if (peers.rank() > 0) return generate_spread(engine, peers, requests, {}, interrupted());
    Output output(prompts, tokenizer, console);
    std::int64_t prompt_tokens = 0, new_tokens = 0;
    catch_interrupts();
    const auto start = std::chrono::steady_clock::now();
    generate_spread(engine, peers, requests,
                    {[&](std::size_t i, std::int32_t id) { output.add(i, id); },
                     [&](std::size_t i, const Generation& result) {
                       prompt_tokens += result.prompt_tokens;
                       new_tokens += std::ssize(result.ids);
                       output.end(i, result);
                     }},
                    interrupted());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    console.note(fmt::format(
        "{}; {} prompts, {} at a time{}: {} tokens read, {} generated, {:.1f} generated a second\n", describe(engine),
        prompts.size(), sequences, peers.size() > 1 ? fmt::format(" on each of {} engines", peers.size()) : "",
        prompt_tokens, new_tokens, static_cast<double>(new_tokens) / seconds));
    if (interrupted()) fail(Status::cancelled, "generation: stopped after {} tokens", new_tokens);
  });
}

}  // namespace cermet::cli
