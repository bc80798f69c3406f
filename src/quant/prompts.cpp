#include "quant/prompts.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "base/utf8_text.hpp"
#include "io/json_file.hpp"
#include "model/checkpoint/checkpoint_files.hpp"

namespace cermet {
namespace {

using Ids = std::vector<std::int32_t>;

/// Text and where it stands: "prompts.jsonl:3".
struct Line {
  std::string_view text;
  std::int64_t number = 0;
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) lines.push_back({line, number});
    begin = end + 1;
  }
  return lines;
}

/// A prompt as it stands in a file.
using Prompt = std::variant<std::string, Ids>;

Prompt prompt_of(Json root) {
  for (const char* key : {"text", "prompt"})
    if (const std::optional<Json> found = root.find(key)) return std::string(found->as_string());
  if (const std::optional<Json> found = root.find("ids")) {
    Ids ids;
    for (const Json id : found->as_array())
      ids.push_back(static_cast<std::int32_t>(id.as_integer(0, std::numeric_limits<std::int32_t>::max())));
    return ids;
  }
  const std::optional<Json> messages = root.find("messages");
  if (!messages) root.refuse("expected \"text\", \"prompt\", \"messages\" or \"ids\", found none of these");
  std::string joined;
  for (const Json message : messages->as_array()) {
    if (!joined.empty()) joined += '\n';
    joined += message.as_object().at("content").as_string();
  }
  return joined;
}

const Tokenizer& require_tokenizer(const Tokenizer* tokenizer, const std::string& file) {
  if (!tokenizer)
    fail(Status::invalid_argument,
         "{}: expected a tokenizer.json beside the model, --tokenizer, or prompts as \"ids\" in a .jsonl file, found "
         "text",
         file);
  return *tokenizer;
}

/// `count` indices spread evenly over [0, size).
std::vector<std::size_t> spread(std::size_t size, std::size_t count) {
  count = std::min(count, size);
  std::vector<std::size_t> chosen(count);
  for (std::size_t i = 0; i < count; ++i) chosen[i] = (2 * i + 1) * size / (2 * count);
  return chosen;
}

/// Prompts that are lines: checked all, tokenized when chosen.
std::vector<Ids> of_lines(const std::vector<Line>& lines, const std::string& file, const Tokenizer* tokenizer,
                          const PromptOptions& options, const std::function<Prompt(const Line&)>& read) {
  std::vector<Prompt> all;
  for (const Line& line : lines) {
    all.push_back(read(line));
    if (std::visit([](const auto& prompt) { return prompt.empty(); }, all.back()))
      fail(Status::invalid_file, "{}:{}: expected a prompt, found an empty one", file, line.number);
    if (std::holds_alternative<std::string>(all.back()))
      require_tokenizer(tokenizer, fmt::format("{}:{}", file, line.number));
  }
  std::vector<Ids> prompts;
  for (const std::size_t i : spread(all.size(), static_cast<std::size_t>(options.samples))) {
    Ids ids = std::holds_alternative<Ids>(all[i]) ? std::get<Ids>(all[i])
                                                  : tokenizer->encode(std::get<std::string>(all[i]), true);
    ids.resize(std::min(ids.size(), static_cast<std::size_t>(options.length)));
    prompts.push_back(std::move(ids));
  }
  return prompts;
}

std::vector<Ids> of_text(std::string_view text, const std::string& file, const Tokenizer& tokenizer,
                         const PromptOptions& options) {
  const Ids ids = tokenizer.encode(text, false);
  Ids start = tokenizer.encode("", true);
  if (start.size() > 1 || static_cast<std::int64_t>(start.size()) >= options.length)
    start.clear();  // an end of text, or nothing that fits
  const std::size_t piece = static_cast<std::size_t>(options.length) - start.size();
  if (ids.size() < piece)
    fail(Status::invalid_file, "{}: expected at least {} tokens, found {}", file, piece, ids.size());
  std::vector<Ids> prompts;
  for (const std::size_t i : spread(ids.size() / piece, static_cast<std::size_t>(options.samples))) {
    prompts.push_back(start);
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(i * piece);
    prompts.back().insert(prompts.back().end(), begin, begin + static_cast<std::ptrdiff_t>(piece));
  }
  return prompts;
}

}  // namespace

std::vector<Ids> read_prompts(const std::filesystem::path& path, const Tokenizer* tokenizer,
                              const PromptOptions& options) {
  require(options.samples >= 1, "samples: expected at least 1, found {}", options.samples);
  require(options.length >= 2, "length: expected at least 2 tokens, found {}", options.length);
  const std::string file = path.string(), bytes = read_file(path);
  const std::string_view text = text_of_file(bytes, file);
  const bool json = path.extension() == ".jsonl";
  if (!json && !options.prompt_per_line) return of_text(text, file, require_tokenizer(tokenizer, file), options);
  const std::vector<Line> lines = lines_of(text);
  if (lines.empty()) fail(Status::invalid_file, "{}: expected at least one prompt, found none", file);
  return of_lines(lines, file, tokenizer, options, [&](const Line& line) -> Prompt {
    if (!json) return std::string(line.text);
    return prompt_of(JsonDocument::parse(line.text, fmt::format("{}:{}", file, line.number)).root().as_object());
  });
}

}  // namespace cermet
