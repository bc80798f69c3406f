#include "model/tokenizer/added_tokens.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/text.hpp"
#include "model/tokenizer/unicode.hpp"

namespace cermet {
namespace {

constexpr std::size_t longest_content = 1024;  ///< bytes; bounds the steps taken at one place of the text

AddedToken read_one(Json entry) {
  AddedToken token;
  const Json content = entry.at("content");
  token.content = content.as_string();
  if (token.content.size() > longest_content)
    content.unexpected(fmt::format("at most {} bytes", longest_content), Status::unsupported);
  token.single_word = entry.at("single_word").as_bool();
  token.lstrip = entry.at("lstrip").as_bool();
  token.rstrip = entry.at("rstrip").as_bool();
  token.normalized = entry.at("normalized").as_bool();
  token.special = entry.at("special").as_bool();
  return token;
}

std::size_t size_of_leading_space(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size()) {
    const Utf8Unit unit = first_utf8_unit(text.substr(size));
    if (!is_space(unit.code_point)) break;
    size += unit.size;
  }
  return size;
}

std::size_t size_of_trailing_space(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size()) {
    const LastCharacter last = last_character(text.substr(0, text.size() - size));
    if (!is_space(last.code_point)) break;
    size += last.size;
  }
  return size;
}

}  // namespace

std::vector<AddedToken> read_added_tokens(Json list, Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  std::int64_t next_id = vocabulary.count(), moved = 0;
  std::string first_moved;
  for (Json entry : list.as_array()) {
    const Json id = entry.at("id");
    const std::int64_t given = id.as_integer(0);
    AddedToken token = read_one(entry);
    if (token.content.empty()) continue;
    const auto known = vocabulary.find(token.content);
    if (!known) vocabulary.insert(token.content, next_id, id);
    token.id = known ? *known : static_cast<std::int32_t>(next_id++);
    if (given != token.id && moved++ == 0)
      first_moved = fmt::format("{}: expected {}, as the tokenizers library numbers {}, found {}", id.path(), token.id,
                                quote(token.content), given);
    const auto old = std::ranges::find(tokens, token.id, &AddedToken::id);
    if (old == tokens.end()) {
      tokens.push_back(std::move(token));
      continue;
    }
    token.special = token.special || old->special;
    *old = std::move(token);
  }
  if (moved > 0)
    log().warn("tokenizer: {}; {} of {} added tokens get other ids than the file says", first_moved, moved,
               tokens.size());
  return tokens;
}

AddedTokenFinder::AddedTokenFinder(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {
  std::ranges::sort(patterns_, {}, &Pattern::text);
  std::vector<std::string_view> texts;
  for (const Pattern& pattern : patterns_) {
    starts_[static_cast<unsigned char>(pattern.text[0])] = true;
    texts.push_back(pattern.text);
  }
  trie_ = ByteTrie(texts);
}

void AddedTokenFinder::split(std::string_view text, FunctionRef<void(Part)> sink) const {
  std::size_t done = 0;         // end of what sink has seen or a token stripped
  std::size_t space_begin = 1;  // the last white space measured for rstrip, so that a run of it is measured once
  std::size_t space_end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const ByteTrie::Found found =
        starts_[static_cast<unsigned char>(text[at])] ? trie_.longest(text.substr(at)) : ByteTrie::Found{0, -1};
    if (found.index < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = patterns_[static_cast<std::size_t>(found.index)].token;
    std::size_t begin = at, end = at + found.size;
    at = end;
    if (token.single_word) {
      const bool word_before = begin > 0 && is_word(last_character(text.substr(0, begin)).code_point);
      if (word_before || (end < text.size() && is_word(first_utf8_unit(text.substr(end)).code_point))) continue;
    }
    if (token.lstrip) begin = done < begin ? begin - size_of_trailing_space(text.substr(done, begin - done)) : done;
    if (token.rstrip) {
      if (end < space_begin || end > space_end) {
        space_begin = end;
        space_end = end + size_of_leading_space(text.substr(end));
      }
      end = space_end;
    }
    if (done < begin) sink({text.substr(done, begin - done), nullptr});
    if (begin < end)
      sink(
          {text.substr(begin, end - begin), &token});  // else it lies in white space that the token before has stripped
    done = end;
  }
  if (done < text.size()) sink({text.substr(done), nullptr});
}

}  // namespace cermet
