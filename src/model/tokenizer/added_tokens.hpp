// Tokens that are found in the text itself, before anything splits it: "<|im_start|>".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.hpp"
#include "io/json_file.hpp"
#include "model/tokenizer/vocabulary.hpp"

namespace cermet {

/// One entry of `added_tokens`.
struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;  ///< no word character may touch it
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< takes the white space after it along
  bool normalized = false;   ///< looked for after normalization, else before
  bool special = false;      ///< left out of the text where decoding skips special tokens
};

/// Reads a list of added tokens and puts those that the vocabulary lacks into it. Throws Error(invalid_file) for a broken or double entry and for an
/// id that contradicts the vocabulary.
std::vector<AddedToken> read_added_tokens(Json list, Vocabulary& vocabulary);

/// Finds added tokens in text: at the leftmost place the longest, without overlap.
class AddedTokenFinder {
 public:
  struct Pattern {
    std::string text;  ///< not empty
    AddedToken token;
  };
  /// The patterns' texts differ from each other.
  explicit AddedTokenFinder(std::vector<Pattern> patterns);

  /// A part of the text: an added token, or text between them (token is null).
  struct Part {
    std::string_view text;
    const AddedToken* token;
  };
  /// Calls sink for the parts of valid UTF-8 in order. White space that a token strips is in no part.
  void split(std::string_view text, FunctionRef<void(Part)> sink) const;

 private:
  struct Edge {
    std::uint8_t byte;
    std::uint32_t node;
  };
  struct Node {
    std::uint32_t first_edge, last_edge;  ///< a range of edges_, sorted by byte
    std::int32_t pattern;                 ///< that ends here; -1: none
  };
  /// The longest pattern that the text starts with, or null.
  const Pattern* longest_at(std::string_view text) const;

  std::vector<Pattern> patterns_;  ///< sorted by text
  std::vector<Node> nodes_;        ///< a trie of the patterns' bytes; 0 is the root
  std::vector<Edge> edges_;
  std::array<bool, 256> starts_{};  ///< some pattern starts with the byte
};

}  // namespace cermet
