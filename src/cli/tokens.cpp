#include "cli/tokens.hpp"

#include <charconv>
#include <filesystem>
#include <limits>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet::cli {
namespace {

constexpr std::string_view separators = " \t\r\n,";

/// The list without one pair of brackets around it.
std::string_view without_brackets(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '[' || text[last] != ']' || first == last) return text;
  return text.substr(first + 1, last - first - 1);
}

}  // namespace

std::vector<std::int32_t> parse_ids(std::string_view name, std::string_view text) {
  std::vector<std::int32_t> ids;
  text = without_brackets(text);
  for (std::size_t at = text.find_first_not_of(separators); at < text.size();
       at = text.find_first_not_of(separators, at)) {
    const std::string_view word = text.substr(at, text.find_first_of(separators, at) - at);
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    require(error == std::errc() && end == word.data() + word.size() && id >= 0,
            "{}: id {}: expected an integer from 0 to {}, found {}", name, ids.size(),
            std::numeric_limits<std::int32_t>::max(), quote(word));
    ids.push_back(id);
    at += word.size();
  }
  return ids;
}

void check_ids(std::span<const std::int32_t> ids, std::int64_t vocab_size) {
  for (const std::int32_t id : ids)
    require(id >= 0 && id < vocab_size, "token id: expected 0 to {}, found {}", vocab_size - 1, id);
}

std::optional<Tokenizer> find_tokenizer(const std::string& model) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored))
    fail(Status::io, "{}: expected a model's folder, found {}", model,
         std::filesystem::exists(model, ignored) ? "a file" : "nothing");
  const std::filesystem::path file = std::filesystem::path(model) / "tokenizer.json";
  if (!std::filesystem::exists(file, ignored)) return std::nullopt;
  return Tokenizer::load(file);
}

Tokenizer load_tokenizer(const std::string& model, std::string_view needed_for) {
  std::optional<Tokenizer> tokenizer = find_tokenizer(model);
  if (!tokenizer) fail(Status::io, "{}: expected a tokenizer.json for {}, found none", model, needed_for);
  return std::move(*tokenizer);
}

}  // namespace cermet::cli
