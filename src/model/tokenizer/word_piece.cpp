#include "model/tokenizer/word_piece.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace cermet {
namespace {

std::string text_of(Json model, std::string_view field, std::string_view fallback) {
  const auto found = model.find(field);
  return std::string(found ? found->as_string() : fallback);
}

[[noreturn]] void refuse_word(std::string_view word, std::string_view unknown_name) {
  fail(Status::unsupported,
       "text: expected words of the tokenizer, whose unk_token {} is not in its vocabulary, found {}",
       quote(unknown_name), quote(word));
}

}  // namespace

WordPiece::WordPiece(Json model, const Vocabulary& vocabulary)
    : unknown_name_(text_of(model, "unk_token", "[UNK]")), unknown_(vocabulary.find(unknown_name_)), longest_(100) {
  if (const auto longest = model.find("max_input_chars_per_word")) longest_ = longest->as_integer(0);
  beginnings_ = tokens_with("", vocabulary);
  continuations_ = tokens_with(text_of(model, "continuing_subword_prefix", "##"), vocabulary);
}

WordPiece::Tokens WordPiece::tokens_with(std::string_view prefix, const Vocabulary& vocabulary) {
  std::vector<std::string_view> texts;
  for (const auto& [name, id] : vocabulary.ids())
    if (name.starts_with(prefix)) texts.push_back(std::string_view(name).substr(prefix.size()));
  std::ranges::sort(texts);
  Tokens made{ByteTrie(texts), {}};
  for (const std::string_view text : texts)
    made.ids.push_back(*vocabulary.find(std::string(prefix) + std::string(text)));
  return made;
}

void WordPiece::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  const auto characters =
      std::ranges::count_if(word, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u; });
  const std::size_t before = ids.size();
  bool covered = characters <= longest_;
  for (std::size_t at = 0; covered && at < word.size();) {
    const Tokens& tokens = at == 0 ? beginnings_ : continuations_;
    const ByteTrie::Found found = tokens.trie.longest(word.substr(at));
    covered = found.index >= 0;
    if (covered) ids.push_back(tokens.ids[static_cast<std::size_t>(found.index)]);
    at += found.size;
  }
  if (covered) return;
  if (!unknown_) refuse_word(word, unknown_name_);
  ids.resize(before);
  ids.push_back(*unknown_);
}

WordLevel::WordLevel(Json model, const Vocabulary& vocabulary)
    : words_(vocabulary.ids()), unknown_name_(text_of(model, "unk_token", "<unk>")) {}

void WordLevel::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  auto found = words_.find(word);
  if (found == words_.end()) found = words_.find(unknown_name_);
  if (found == words_.end()) refuse_word(word, unknown_name_);
  ids.push_back(found->second);
}

}  // namespace cermet
