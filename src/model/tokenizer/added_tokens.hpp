// Tokens that are found in the text itself, before anything splits it: "<|im_start|>".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.hpp"
#include "io/json_file.hpp"
#include "model/tokenizer/byte_trie.hpp"
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

/// Reads a list of added tokens and puts those that the vocabulary lacks into it. Ids are those of the tokenizers
/// library, whatever the file says: of the vocabulary, or the next ones after it; a difference is logged. Of entries
/// with the same content the last counts. Throws Error(invalid_file) for a broken entry.
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
  std::vector<Pattern> patterns_;   ///< sorted by text
  ByteTrie trie_;                   ///< of the patterns' texts
  std::array<bool, 256> starts_{};  ///< some pattern starts with the byte
};

}  // namespace cermet
