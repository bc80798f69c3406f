#include "quant/prompts.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/json_file.hpp"
#include "quant/checkpoint_files.hpp"

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

/// A file of another kind, given by mistake, is told at its first byte that is no text.
void require_text(std::string_view text, const std::string& file) {
  std::int64_t line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(at));
    if (!unit.valid || unit.code_point == 0)
      fail(Status::invalid_file, "{}:{}: expected text in UTF-8, found the byte 0x{:02x}", file, line, static_cast<unsigned char>(text[at]));
    line += unit.code_point == '\n';
    at += unit.size;
  }
}

std::string text_of(Json root) {
  for (const char* key : {"text", "prompt"})
    if (const std::optional<Json> found = root.find(key)) return std::string(found->as_string());
  const std::optional<Json> messages = root.find("messages");
  if (!messages) root.refuse("expected \"text\", \"prompt\" or \"messages\", found none of these");
  std::string joined;
  for (const Json message : messages->as_array()) {
    if (!joined.empty()) joined += '\n';
    joined += message.as_object().at("content").as_string();
  }
  return joined;
}

/// `count` indices spread evenly over [0, size).
std::vector<std::size_t> spread(std::size_t size, std::size_t count) {
  count = std::min(count, size);
  std::vector<std::size_t> chosen(count);
  for (std::size_t i = 0; i < count; ++i) chosen[i] = (2 * i + 1) * size / (2 * count);
  return chosen;
}

/// Prompts that are lines: chosen before they are tokenized, checked all.
std::vector<Ids> of_lines(const std::vector<Line>& lines, const std::string& file, const Tokenizer& tokenizer, const PromptOptions& options,
                          const std::function<std::string(const Line&)>& read) {
  std::vector<std::string> texts;
  for (const Line& line : lines) {
    texts.push_back(read(line));
    if (texts.back().empty()) fail(Status::invalid_file, "{}:{}: expected a prompt, found an empty text", file, line.number);
  }
  std::vector<Ids> prompts;
  for (const std::size_t i : spread(texts.size(), static_cast<std::size_t>(options.samples))) {
    Ids ids = tokenizer.encode(texts[i], true);
    ids.resize(std::min(ids.size(), static_cast<std::size_t>(options.length)));
    prompts.push_back(std::move(ids));
  }
  return prompts;
}

std::vector<Ids> of_text(std::string_view text, const std::string& file, const Tokenizer& tokenizer, const PromptOptions& options) {
  const Ids ids = tokenizer.encode(text, false);
  Ids start = tokenizer.encode("", true);
  if (start.size() > 1 || static_cast<std::int64_t>(start.size()) >= options.length) start.clear();  // an end of text, or nothing that fits
  const std::size_t piece = static_cast<std::size_t>(options.length) - start.size();
  if (ids.size() < piece) fail(Status::invalid_file, "{}: expected at least {} tokens, found {}", file, piece, ids.size());
  std::vector<Ids> prompts;
  for (const std::size_t i : spread(ids.size() / piece, static_cast<std::size_t>(options.samples))) {
    prompts.push_back(start);
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(i * piece);
    prompts.back().insert(prompts.back().end(), begin, begin + static_cast<std::ptrdiff_t>(piece));
  }
  return prompts;
}

}  // namespace

std::vector<Ids> read_prompts(const std::filesystem::path& path, const Tokenizer& tokenizer, const PromptOptions& options) {
  require(options.samples >= 1, "samples: expected at least 1, found {}", options.samples);
  require(options.length >= 2, "length: expected at least 2 tokens, found {}", options.length);
  const std::string file = path.string(), text = content_of_file(path);
  require_text(text, file);
  const bool json = path.extension() == ".jsonl";
  if (!json && !options.prompt_per_line) return of_text(text, file, tokenizer, options);
  const std::vector<Line> lines = lines_of(text);
  if (lines.empty()) fail(Status::invalid_file, "{}: expected at least one prompt, found none", file);
  return of_lines(lines, file, tokenizer, options, [&](const Line& line) {
    if (!json) return std::string(line.text);
    return text_of(JsonDocument::parse(line.text, fmt::format("{}:{}", file, line.number)).root().as_object());
  });
}

}  // namespace cermet
