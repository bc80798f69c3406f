#include "model/tokenizer/added_tokens.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "model/tokenizer/unicode.hpp"

namespace cermet {
namespace {

constexpr std::size_t longest_content = 1024;  ///< bytes; bounds the steps taken at one place of the text

AddedToken read_one(Json entry, Vocabulary& vocabulary) {
  AddedToken token;
  const Json content = entry.at("content");
  token.content = content.as_string();
  if (token.content.empty()) content.unexpected("a text that is not empty");
  if (token.content.size() > longest_content) content.unexpected(fmt::format("at most {} bytes", longest_content), Status::unsupported);
  const Json id = entry.at("id");
  const std::int64_t number = id.as_integer(0);
  if (const auto known = vocabulary.find(token.content); !known) {
    vocabulary.insert(token.content, number, id);
  } else if (*known != number) {
    id.refuse(fmt::format("expected {}, the id of {} in the vocabulary, found {}", *known, quote(token.content), number));
  }
  token.id = static_cast<std::int32_t>(number);
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
  std::vector<bool> taken;
  for (Json entry : list.as_array()) {
    tokens.push_back(read_one(entry, vocabulary));
    taken.resize(static_cast<std::size_t>(vocabulary.size()));
    const auto slot = static_cast<std::size_t>(tokens.back().id);
    if (taken[slot]) entry.refuse(fmt::format("expected each added token once, found {} again", quote(tokens.back().content)));
    taken[slot] = true;
  }
  return tokens;
}

AddedTokenFinder::AddedTokenFinder(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {
  std::sort(patterns_.begin(), patterns_.end(), [](const Pattern& a, const Pattern& b) { return a.text < b.text; });
  for (const Pattern& pattern : patterns_) starts_[static_cast<unsigned char>(pattern.text[0])] = true;
  // Breadth first: a node stands for the patterns [begin, end), which agree in their first `depth` bytes.
  struct Group {
    std::size_t begin, end, depth;
  };
  std::vector<Group> groups = {{0, patterns_.size(), 0}};
  for (std::size_t node = 0; node < groups.size(); ++node) {
    auto [begin, end, depth] = groups[node];
    std::int32_t ends_here = -1;
    if (begin < end && patterns_[begin].text.size() == depth) ends_here = static_cast<std::int32_t>(begin++);
    const auto first_edge = static_cast<std::uint32_t>(edges_.size());
    while (begin < end) {
      const char byte = patterns_[begin].text[depth];
      std::size_t next = begin;
      while (next < end && patterns_[next].text[depth] == byte) ++next;
      edges_.push_back({static_cast<std::uint8_t>(byte), static_cast<std::uint32_t>(groups.size())});
      groups.push_back({begin, next, depth + 1});
      begin = next;
    }
    nodes_.push_back({first_edge, static_cast<std::uint32_t>(edges_.size()), ends_here});
  }
}

const AddedTokenFinder::Pattern* AddedTokenFinder::longest_at(std::string_view text) const {
  const Pattern* longest = nullptr;
  const Node* node = &nodes_[0];
  for (const char c : text) {
    const auto last = edges_.begin() + node->last_edge;
    const auto byte = static_cast<std::uint8_t>(c);
    const auto edge = std::lower_bound(edges_.begin() + node->first_edge, last, byte, [](const Edge& e, std::uint8_t b) { return e.byte < b; });
    if (edge == last || edge->byte != byte) break;
    node = &nodes_[edge->node];
    if (node->pattern >= 0) longest = &patterns_[static_cast<std::size_t>(node->pattern)];
  }
  return longest;
}

void AddedTokenFinder::split(std::string_view text, FunctionRef<void(Part)> sink) const {
  std::size_t done = 0;         // end of what sink has seen or a token stripped
  std::size_t space_begin = 1;  // the last white space measured for rstrip, so that a run of it is measured once
  std::size_t space_end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Pattern* pattern = starts_[static_cast<unsigned char>(text[at])] ? longest_at(text.substr(at)) : nullptr;
    if (pattern == nullptr) {
      ++at;
      continue;
    }
    const AddedToken& token = pattern->token;
    std::size_t begin = at, end = at + pattern->text.size();
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
    if (begin < end) sink({text.substr(begin, end - begin), &token});  // else it lies in white space that the token before has stripped
    done = end;
  }
  if (done < text.size()) sink({text.substr(done), nullptr});
}

}  // namespace cermet
